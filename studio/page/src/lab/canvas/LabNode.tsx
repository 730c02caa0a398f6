// A host, a router or a switch.

import { Handle, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import type { Kind } from "../../api";

export const LabNode = memo(function LabNode({ data, selected }: NodeProps) {
  const { name, kind } = data as { name: string; kind: Kind };
  return (
    <div className={`node ${kind}${selected ? " chosen" : ""}`} data-testid={`node-${name}`}>
      <Handle type="target" position={Position.Left} className="port" />
      <span className="shape" aria-hidden="true" />
      <span className="name">{name}</span>
      <Handle type="source" position={Position.Right} className="port" />
    </div>
  );
});
