// A host, a router or a switch.

import { Handle, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import type { Kind } from "../../api";
import { useNamed } from "./words";

export const LabNode = memo(function LabNode({ id, data, selected }: NodeProps) {
  const { kind } = data as { kind: Kind };
  const named = useNamed(id);
  return (
    <div className={`node ${kind}${selected ? " chosen" : ""}`} data-testid={`node-${id}`}>
      <span className="shape" aria-hidden="true" />
      {named && <span className="name">{id}</span>}
      <Handle type="source" position={Position.Right} className="port" />
    </div>
  );
});
