// The drawing: nodes that can be moved and joined, links with what they do. It follows the text, and changes it.

import {
  Background,
  type Connection,
  Controls,
  type Edge,
  type Node,
  type NodeChange,
  ReactFlow,
  useNodesState,
} from "@xyflow/react";
import { useCallback, useEffect, useMemo } from "react";
import type { Drawing, Moment } from "../api";
import { LabNode } from "./LabNode";
import { type LinkData, LinkEdge } from "./LinkEdge";

export type Selected = { kind: "link" | "node"; name: string } | null;

interface Props {
  drawing: Drawing | null;
  moments: Map<string, Moment>;
  down: Set<string>;
  selected: Selected;
  onSelect: (what: Selected) => void;
  onMove: (node: string, x: number, y: number) => void;
  onJoin: (a: string, b: string) => void;
  onOpen: (node: string) => void;
}

const NODES = { lab: LabNode };
const EDGES = { link: LinkEdge };

export function Canvas({ drawing, moments, down, selected, onSelect, onMove, onJoin, onOpen }: Props) {
  const [nodes, setNodes, onNodesChange] = useNodesState<Node>([]);

  useEffect(() => {
    setNodes((old) => {
      const held = new Map(old.filter((node) => node.dragging).map((node) => [node.id, node.position]));
      return (drawing?.nodes ?? []).map((node) => ({
        id: node.name,
        type: "lab",
        position: held.get(node.name) ?? { x: node.x, y: node.y },
        data: { name: node.name, kind: node.kind },
        selected: selected?.kind === "node" && selected.name === node.name,
        ariaLabel: `${node.kind} ${node.name}`,
      }));
    });
  }, [drawing, selected, setNodes]);

  const edges = useMemo<Edge[]>(
    () =>
      (drawing?.links ?? []).map((link) => {
        const data: LinkData = { link, moments, down: down.has(link.name) };
        return {
          id: link.name,
          source: link.a,
          target: link.b,
          type: "link",
          data: data as unknown as Record<string, unknown>,
          selected: selected?.kind === "link" && selected.name === link.name,
          ariaLabel: `link ${link.name} from ${link.a} to ${link.b}`,
        };
      }),
    [drawing, moments, down, selected],
  );

  const changed = useCallback(
    (changes: NodeChange[]) => onNodesChange(changes.filter((each) => each.type !== "remove")),
    [onNodesChange],
  );
  const joined = useCallback(
    (connection: Connection) => onJoin(connection.source, connection.target),
    [onJoin],
  );

  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={NODES}
      edgeTypes={EDGES}
      onNodesChange={changed}
      onConnect={joined}
      onNodeDragStop={(_, node) => onMove(node.id, node.position.x, node.position.y)}
      onNodeClick={(_, node) => onSelect({ kind: "node", name: node.id })}
      onNodeDoubleClick={(_, node) => onOpen(node.id)}
      onEdgeClick={(_, edge) => onSelect({ kind: "link", name: edge.id })}
      onPaneClick={() => onSelect(null)}
      onSelectionChange={({ nodes: chosen, edges: lines }) => {
        const node = chosen[0];
        const line = lines[0];
        if (node && selected?.name !== node.id) onSelect({ kind: "node", name: node.id });
        else if (line && selected?.name !== line.id) onSelect({ kind: "link", name: line.id });
      }}
      deleteKeyCode={null}
      onlyRenderVisibleElements
      fitView
      minZoom={0.05}
      proOptions={{ hideAttribution: false }}
    >
      <Background />
      <Controls showInteractive={false} />
    </ReactFlow>
  );
}
