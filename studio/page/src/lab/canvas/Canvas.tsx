// The drawing: nodes that can be moved and joined, links with what they do. It follows the text, and changes it.
// Names and words are of constant size: they stand where there is room (labels.ts).

import {
  Background,
  type Connection,
  ConnectionMode,
  Controls,
  type Edge,
  type Node,
  type NodeChange,
  ReactFlow,
  useNodesState,
  useReactFlow,
} from "@xyflow/react";
import { useCallback, useEffect, useMemo, useState } from "react";
import type { Drawing, DrawnLink } from "../../api";
import { LabNode } from "./LabNode";
import { type LinkData, LinkEdge } from "./LinkEdge";
import { LiveLinks } from "./LiveLinks";
import { RADIUS } from "./labels";
import { WordsPlaced } from "./WordsPlaced";
import { Words, WordsShown } from "./words";

export type Selected = { kind: "link" | "node"; name: string } | null;

interface Props {
  drawing: Drawing | null;
  running: boolean;
  down: Set<string>;
  selected: Selected;
  onSelect: (what: Selected) => void;
  onMove: (node: string, x: number, y: number) => void;
  onJoin: (a: string, b: string) => void;
  onOpen: (node: string) => void;
}

const FIT_MS = 150; // until nodes are measured
const NONE: DrawnLink[] = [];
const NODES = { lab: LabNode };
const EDGES = { link: LinkEdge };

export function Canvas({ drawing, running, down, selected, onSelect, onMove, onJoin, onOpen }: Props) {
  const [nodes, setNodes, onNodesChange] = useNodesState<Node>([]);
  const [words] = useState(() => new Words());
  const chosen = useMemo(() => new Set(selected ? [selected.name] : []), [selected]);

  useEffect(() => {
    // What React Flow has measured of a node stays with it: one that is not measured is hidden for a moment.
    setNodes((old) => {
      const known = new Map(old.map((node) => [node.id, node]));
      return (drawing?.nodes ?? []).map((node) => {
        const before = known.get(node.name);
        return {
          ...before,
          id: node.name,
          type: "lab",
          position: before?.dragging ? before.position : { x: node.x, y: node.y },
          data: { kind: node.kind },
          selected: selected?.kind === "node" && selected.name === node.name,
          ariaLabel: `${node.kind} ${node.name}`,
        };
      });
    });
  }, [drawing, selected, setNodes]);

  // Another network is shown whole; one that changes a little stays where it is.
  const { fitView } = useReactFlow();
  const what = `${drawing?.lab} ${drawing?.topology}`;
  useEffect(() => {
    if (what === "") return;
    const timer = setTimeout(() => fitView({ padding: 0.15, maxZoom: 1.25 }), FIT_MS);
    return () => clearTimeout(timer);
  }, [what, fitView]);

  const edges = useMemo<Edge[]>(
    () =>
      (drawing?.links ?? []).map((link) => {
        const data: LinkData = { link, down: down.has(link.name), path: "" };
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
    [drawing, down, selected],
  );

  // What is selected is the page's state, whoever selects it: the pointer, the keyboard, a table.
  const changed = useCallback(
    (changes: NodeChange[]) => {
      for (const each of changes)
        if (each.type === "select" && each.selected) onSelect({ kind: "node", name: each.id });
      onNodesChange(changes.filter((each) => each.type !== "remove" && each.type !== "select"));
    },
    [onNodesChange, onSelect],
  );
  const joined = useCallback(
    (connection: Connection) => onJoin(connection.source, connection.target),
    [onJoin],
  );

  return (
    <WordsShown.Provider value={words}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODES}
        edgeTypes={EDGES}
        onNodesChange={changed}
        onConnect={joined}
        onNodeDragStop={(_, node) => onMove(node.id, node.position.x, node.position.y)}
        onNodeDoubleClick={(_, node) => onOpen(node.id)}
        onPaneClick={() => onSelect(null)}
        onEdgesChange={(changes) => {
          for (const each of changes)
            if (each.type === "select" && each.selected) onSelect({ kind: "link", name: each.id });
        }}
        deleteKeyCode={null}
        zoomOnDoubleClick={false}
        onlyRenderVisibleElements
        connectionMode={ConnectionMode.Loose}
        connectionRadius={RADIUS * 2}
        colorMode="system"
        className={running ? "running" : ""}
        minZoom={0.05}
        proOptions={{ hideAttribution: false }}
      >
        <Background />
        {running && <LiveLinks links={drawing?.links ?? NONE} down={down} />}
        <Controls showInteractive={false} />
        <WordsPlaced
          words={words}
          nodes={nodes}
          drawing={drawing}
          running={running}
          down={down}
          chosen={chosen}
        />
      </ReactFlow>
    </WordsShown.Provider>
  );
}
