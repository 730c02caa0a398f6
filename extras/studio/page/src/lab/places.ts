// Where nodes of a network drawn by hand stand, and what of it is drawn while its text is no lab yet. A node stays where it
// was put or first drawn, whatever comes and goes beside it.

import { valueAt } from "../common/edit";
import type { Drawing, DrawnLink, DrawnNode } from "../server";
import type { Places } from "./canvas/arrange";
import { KINDS, list, NAME, type NodeKind, nameOf, type Written } from "./graph";

const AWAY = 120; // from a neighbour
const APART = 70; // from every other node
const TURNS = 16;

type Point = [number, number];

/** The graph that a text names, without what only a lab has; `last`: links that it has already are drawn as there. Null for
 * a text that names no nodes one by one. */
export function unfinished(text: string, last: Drawing | null): Drawing | null {
  const nodes: DrawnNode[] = [];
  for (const kind of Object.keys(KINDS) as NodeKind[])
    for (const name of list(text, KINDS[kind][0])) {
      if (typeof name !== "string" || !NAME.test(name)) return null;
      if (!nodes.some((node) => node.name === name)) nodes.push({ name, kind, x: 0, y: 0 });
    }
  if (nodes.length === 0) return null;
  const there = new Set(nodes.map((node) => node.name));
  const links = new Map<string, DrawnLink>();
  for (const link of list(text, "links")) {
    const { between } = (link ?? {}) as Written;
    const [a, b] = Array.isArray(between) ? between.map(String) : [];
    if (a === undefined || b === undefined || a === b || !there.has(a) || !there.has(b)) continue;
    const name = nameOf(link);
    const known = last?.links.find((each) => each.name === name && each.a === a && each.b === b);
    links.set(name, known ?? { name, a, b, role: "access", forward: null, backward: null, bottleneck_of: 0 });
  }
  const shared = { lab: last?.lab ?? "", routing: last?.routing ?? "static", plan_sha256: "", pairs: [] };
  return { ...shared, topology: "graph", nodes, links: [...links.values()] };
}

function layoutOf(text: string): Places {
  const found = valueAt(text, ["layout"]);
  if (found === null || typeof found !== "object") return new Map();
  const isPoint = (at: unknown) =>
    Array.isArray(at) && at.length === 2 && at.every((each) => typeof each === "number");
  return new Map(Object.entries(found).filter(([, at]) => isPoint(at))) as Places;
}

/** A place for a node beside its neighbours, with room around it. */
export function freePlace(name: string, links: { a: string; b: string }[], taken: Places): Point {
  const all = [...taken.values()];
  if (all.length === 0) return [0, 0];
  const beside = links.flatMap(({ a, b }) => (a === name ? [b] : b === name ? [a] : []));
  const near = beside.map((each) => taken.get(each)).find((at) => at !== undefined);
  const middle = (axis: 0 | 1, of: Point[]) => of.reduce((sum, at) => sum + at[axis], 0) / of.length;
  const centre: Point = [middle(0, all), middle(1, all)];
  const span = (axis: 0 | 1) => {
    const along = all.map((at) => at[axis]);
    return [Math.min(...along), Math.max(...along)] as const;
  };
  const [[left, right], [top, bottom]] = [span(0), span(1)];
  // A node without neighbours stands where a drawing has most room: below one that is wide, beside one that is high.
  const wide = right - left >= bottom - top;
  const from: Point = near ?? (wide ? [centre[0], bottom] : [right, centre[1]]);
  const outward = near ? Math.atan2(from[1] - centre[1], from[0] - centre[0]) : wide ? Math.PI / 2 : 0;
  for (let reach = AWAY; ; reach += APART)
    for (let turn = 0; turn < TURNS; turn++) {
      const side = turn % 2 === 0 ? turn / 2 : -(turn + 1) / 2;
      const angle = outward + (side * 2 * Math.PI) / TURNS;
      const at: Point = [
        Math.round(from[0] + reach * Math.cos(angle)),
        Math.round(from[1] + reach * Math.sin(angle)),
      ];
      if (all.every(([x, y]) => Math.hypot(x - at[0], y - at[1]) >= APART)) return at;
    }
}

/** The places of one document's nodes over time. */
export class Standing {
  private places: Places | null = null; // of nodes that the text gives no place
  private of = "";

  /** From now on nodes without a place in the text stand where the server puts them. */
  forget(): void {
    this.places = null;
  }

  /** A drawing with its nodes where they stand. `file`: the document; `current`: the server drew just this text. */
  placed(drawing: Drawing, text: string, file: string, current: boolean): Drawing {
    if (drawing.topology !== "graph") {
      this.forget();
      return drawing;
    }
    if (this.of !== file) this.forget();
    const layout = layoutOf(text);
    const isNew = ({ name }: DrawnNode) => !layout.has(name) && !this.places?.has(name);
    const fresh = drawing.nodes.filter(isNew);
    if (current && (this.places === null || fresh.length > drawing.nodes.length / 2))
      this.places = new Map(
        drawing.nodes.filter(({ name }) => !layout.has(name)).map(({ name, x, y }) => [name, [x, y]]),
      );
    else if (this.places === null && drawing.plan_sha256 !== "") return drawing; // of an older text
    this.of = file;
    this.places ??= new Map();
    const at: Places = new Map();
    for (const { name } of drawing.nodes) {
      const known = layout.get(name) ?? this.places.get(name);
      if (known) at.set(name, known);
    }
    for (const { name } of drawing.nodes)
      if (!at.has(name)) {
        const found = freePlace(name, drawing.links, at);
        this.places.set(name, found);
        at.set(name, found);
      }
    const nodes = drawing.nodes.map((node) => {
      const [x, y] = at.get(node.name) as Point;
      return { ...node, x, y };
    });
    return { ...drawing, nodes };
  }
}
