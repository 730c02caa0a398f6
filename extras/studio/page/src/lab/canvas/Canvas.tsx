// The drawing: nodes that can be moved and joined, links with what they do. It follows the text, and changes it.
// Names and words are of constant size: they stand where there is room (labels.ts).

import {
  Background,
  type Connection,
  ConnectionMode,
  Controls,
  type Edge,
  type EdgeChange,
  type Node,
  type NodeChange,
  Panel,
  ReactFlow,
  useNodesState,
} from "@xyflow/react";
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Drawing, DrawnLink } from "../../server";
import type { Places } from "./arrange";
import { FoldedSide, GroupBox } from "./GroupBox";
import { folded, type Group, groupsOf } from "./groups";
import { LabNode } from "./LabNode";
import { LinkEdge, type OnPath } from "./LinkEdge";
import { LiveLinks } from "./LiveLinks";
import { RADIUS } from "./labels";
import { BOX, edgesOf, namesOf, nodesOf, type Selected } from "./shown";
import { FIT, useSeen } from "./useSeen";
import { WordsPlaced } from "./WordsPlaced";
import { Words, WordsShown } from "./words";

export type { Selected } from "./shown";

interface Props {
  drawing: Drawing | null;
  running: boolean;
  down: Set<string>;
  path?: Map<string, OnPath>;
  selected: Selected;
  onSelect: (what: Selected) => void;
  onMove: (places: Places) => void;
  onJoin: (a: string, b: string) => void;
  onOpen: (node: string) => void;
  onRemove?: () => void;
  children?: ReactNode; // what stands above the drawing
}

const MOVED_MS = 250; // keys that move are one change
const NONE: DrawnLink[] = [];
const NO_PATH = new Map<string, OnPath>();
const NODES = { lab: LabNode, side: GroupBox, folded: FoldedSide };
const EDGES = { link: LinkEdge };

export function Canvas(props: Props) {
  const {
    drawing,
    running,
    down,
    path = NO_PATH,
    selected,
    onSelect,
    onMove,
    onJoin,
    onOpen,
    onRemove,
  } = props;
  const [nodes, setNodes, onNodesChange] = useNodesState<Node>([]);
  const [words] = useState(() => new Words());
  const [away, setAway] = useState<Set<string>>(new Set()); // sides that are folded
  const chosen = useMemo(() => new Set(namesOf(selected)), [selected]);
  const kept = useRef(new Map<string, Edge>());
  const groups = useMemo(() => (drawing ? groupsOf(drawing) : []), [drawing]);
  const shown = useMemo(
    () =>
      drawing &&
      folded(
        drawing,
        groups.filter((group) => away.has(group.name)),
      ),
    [drawing, groups, away],
  );
  const turn = useCallback(
    (group: Group) =>
      setAway((old) => (old.delete(group.name) ? new Set(old) : new Set(old).add(group.name))),
    [],
  );
  useEffect(() => {
    const [open, closed] = [
      groups.filter((each) => !away.has(each.name)),
      groups.filter((each) => away.has(each.name)),
    ];
    setNodes((old) => (shown ? nodesOf(shown, open, closed, chosen, old, turn) : []));
  }, [shown, groups, away, chosen, setNodes, turn]);
  const edges = useMemo(
    () => (shown ? edgesOf(shown, down, path, chosen, kept.current) : []),
    [shown, down, path, chosen],
  );

  useSeen(drawing);

  // Moves by pointer and by keys are written when they have ended, those that come together as one change.
  const moved = useRef<Places>(new Map());
  const moves = useRef(0);
  const write = useRef(onMove);
  write.current = onMove;
  const place = useCallback((id: string, x: number, y: number) => {
    moved.current.set(id, [Math.round(x), Math.round(y)]);
    clearTimeout(moves.current);
    moves.current = window.setTimeout(() => {
      write.current(moved.current);
      moved.current = new Map();
    }, MOVED_MS);
  }, []);
  const where = useRef(nodes);
  where.current = nodes;
  const moveGroup = useCallback(
    (box: Node, ended: boolean) => {
      const group = groups.find((each) => box.id === `${BOX}${each.name}`);
      const before = where.current.find((node) => node.id === box.id)?.data as {
        from?: { x: number; y: number };
      };
      if (!group) return;
      const from = before.from ?? box.position;
      const [dx, dy] = [box.position.x - from.x, box.position.y - from.y];
      const members = new Set(group.members);
      setNodes((old) =>
        old.map((node) => {
          if (node.id === box.id)
            return { ...node, data: { ...node.data, from: ended ? undefined : box.position } };
          if (!members.has(node.id)) return node;
          const at = { x: node.position.x + dx, y: node.position.y + dy };
          if (ended) place(node.id, at.x, at.y);
          return { ...node, position: at };
        }),
      );
    },
    [groups, setNodes, place],
  );

  // What is selected is the page's state, whoever selects it: the pointer, the keyboard, a table.
  const changed = useCallback(
    (changes: NodeChange[]) => {
      const now = new Set(chosen);
      let other = false;
      for (const each of changes) {
        if (each.type === "select" && !each.id.startsWith(BOX)) {
          other ||= each.selected !== now.has(each.id);
          if (each.selected) now.add(each.id);
          else now.delete(each.id);
        }
        if (each.type === "position" && each.dragging === false && each.position && !each.id.startsWith(BOX))
          place(each.id, each.position.x, each.position.y);
      }
      const names = [...now].filter((name) => where.current.some((node) => node.id === name));
      if (other && names.length > 0)
        onSelect(names.length === 1 ? { kind: "node", name: names[0] ?? "" } : { kind: "nodes", names });
      onNodesChange(changes.filter((each) => each.type !== "remove" && each.type !== "select"));
    },
    [chosen, onNodesChange, onSelect, place],
  );
  const linkChanged = (changes: EdgeChange[]) => {
    for (const each of changes)
      if (each.type === "select" && each.selected) onSelect({ kind: "link", name: each.id });
  };
  const joined = useCallback(
    (connection: Connection) => onJoin(connection.source, connection.target),
    [onJoin],
  );
  const pressed = (event: KeyboardEvent) => {
    if ((event.key === "Delete" || event.key === "Backspace") && !(event.target instanceof HTMLInputElement))
      onRemove?.();
  };

  return (
    <WordsShown.Provider value={words}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODES}
        edgeTypes={EDGES}
        onNodesChange={changed}
        onEdgesChange={linkChanged}
        onConnect={joined}
        onNodeDragStart={(_, node) => node.type === "side" && moveGroup(node, false)}
        onNodeDrag={(_, node) => node.type === "side" && moveGroup(node, false)}
        onNodeDragStop={(_, node) => node.type === "side" && moveGroup(node, true)}
        onNodeDoubleClick={(_, node) => node.type === "lab" && onOpen(node.id)}
        onPaneClick={() => onSelect(null)}
        onKeyDown={pressed}
        deleteKeyCode={null}
        zoomOnDoubleClick={false}
        onlyRenderVisibleElements
        connectionMode={ConnectionMode.Loose}
        connectionRadius={RADIUS * 2}
        colorMode="system"
        className={running ? "running" : ""}
        minZoom={0.02}
        proOptions={{ hideAttribution: false }}
      >
        <Background />
        {running && <LiveLinks links={drawing?.links ?? NONE} down={down} />}
        <Controls showInteractive={false} fitViewOptions={FIT} />
        <WordsPlaced
          words={words}
          nodes={nodes}
          drawing={shown}
          running={running}
          down={down}
          chosen={chosen}
        />
        <Panel position="top-right">{props.children}</Panel>
      </ReactFlow>
    </WordsShown.Provider>
  );
}
