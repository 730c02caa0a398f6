// The box behind the hosts of a side. It is moved by its name, and its hosts with it.

import { Handle, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";

export interface BoxData {
  name: string;
  count: number;
  width: number;
  height: number;
  onFold: () => void;
}

export const GroupBox = memo(function GroupBox({ data }: NodeProps) {
  const { name, count, width, height, onFold } = data as unknown as BoxData;
  return (
    <div className="side" style={{ width, height }} data-testid={`side-${name}`}>
      <span className="side-name">
        {name}, {count} hosts{" "}
        <button type="button" className="nodrag" onClick={onFold} aria-label={`Fold ${name}`}>
          −
        </button>
      </span>
    </div>
  );
});

export interface FoldedData {
  name: string;
  count: number;
  onUnfold: () => void;
}

/** A side as one node. */
export const FoldedSide = memo(function FoldedSide({ data }: NodeProps) {
  const { name, count, onUnfold } = data as unknown as FoldedData;
  return (
    <div className="node host folded" data-testid={`folded-${name}`}>
      <Handle type="source" position={Position.Right} className="port" isConnectable={false} />
      <span className="shape" aria-hidden="true">
        {count}
      </span>
      <span className="name">
        {name}{" "}
        <button type="button" className="nodrag" onClick={onUnfold} aria-label={`Unfold ${name}`}>
          +
        </button>
      </span>
    </div>
  );
});
