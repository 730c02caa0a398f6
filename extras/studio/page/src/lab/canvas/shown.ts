// The drawing as React Flow takes it: nodes, boxes of sides, lines.

import type { Edge, Node } from "@xyflow/react";
import type { Drawing } from "../../server";
import type { BoxData, FoldedData } from "./GroupBox";
import { foldedName, type Group } from "./groups";
import type { LinkData, OnPath } from "./LinkEdge";
import { RADIUS } from "./labels";

export type Selected =
  | { kind: "link"; name: string }
  | { kind: "node"; name: string }
  | { kind: "nodes"; names: string[] }
  | null;

const AROUND = 26; // a box around its hosts
export const BOX = "box:";

export function namesOf(selected: Selected): string[] {
  if (!selected) return [];
  return selected.kind === "nodes" ? selected.names : [selected.name];
}

/** Nodes of a drawing in which `away` are folded. What React Flow has measured of a node stays with it: one that is not
 * measured is hidden for a moment. */
export function nodesOf(
  drawing: Drawing,
  open: Group[],
  away: Group[],
  chosen: Set<string>,
  old: Node[],
  turn: (group: Group) => void,
): Node[] {
  const known = new Map(old.map((node) => [node.id, node]));
  const sides = new Map(away.map((group) => [foldedName(group), group]));
  const nodes = drawing.nodes.map((node): Node => {
    const before = known.get(node.name);
    const side = sides.get(node.name);
    const folds: FoldedData | null = side
      ? { name: side.name, count: side.members.length, onUnfold: () => turn(side) }
      : null;
    return {
      ...before,
      id: node.name,
      type: side ? "folded" : "lab",
      position: before?.dragging ? before.position : { x: node.x, y: node.y },
      data: { kind: node.kind, ...folds },
      selected: chosen.has(node.name),
      ariaLabel: side ? `side ${side.name}` : `${node.kind} ${node.name}`,
    };
  });
  const at = new Map(nodes.map((node) => [node.id, node.position]));
  const boxes = open.map((group): Node => {
    const id = `${BOX}${group.name}`;
    const points = group.members.flatMap((name) => at.get(name) ?? []);
    const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
    const [x, y] = [Math.min(...xs) - AROUND, Math.min(...ys) - AROUND];
    const data: BoxData = {
      name: group.name,
      count: group.members.length,
      width: Math.max(...xs) + 2 * RADIUS + AROUND - x,
      height: Math.max(...ys) + 2 * RADIUS + AROUND - y,
      onFold: () => turn(group),
    };
    return {
      ...known.get(id),
      id,
      type: "side",
      position: { x, y },
      data: data as unknown as Record<string, unknown>,
      zIndex: -1,
      selectable: false,
      focusable: false,
      style: { pointerEvents: "none" }, // what is below it can be reached
      dragHandle: ".side-name",
    };
  });
  return [...boxes, ...nodes];
}

export function edgesOf(
  drawing: Drawing,
  down: Set<string>,
  path: Map<string, OnPath>,
  chosen: Set<string>,
  old: Map<string, Edge>,
): Edge[] {
  return drawing.links.map((link) => {
    const data: LinkData = { link, down: down.has(link.name), path: path.get(link.name) ?? "" };
    const selected = chosen.has(link.name);
    const before = old.get(link.name);
    const was = before?.data as unknown as LinkData | undefined;
    if (
      before?.selected === selected &&
      was?.link === link &&
      was.down === data.down &&
      was.path === data.path
    )
      return before;
    const edge: Edge = {
      id: link.name,
      source: link.a,
      target: link.b,
      type: "link",
      data: data as unknown as Record<string, unknown>,
      selected,
      ariaLabel: `link ${link.name} from ${link.a} to ${link.b}${data.down ? ", down" : ""}`,
    };
    old.set(link.name, edge);
    return edge;
  });
}
