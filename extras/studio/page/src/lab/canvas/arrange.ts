// Places for the nodes, by ELK: layers for what has ends (a dumbbell, a row, a tree), distances for what has none (a ring, a
// star, a mesh). ELK runs in a worker, so that the page goes on.

import type { ELK, ElkNode } from "elkjs/lib/elk-api";
import type { Drawing } from "../../server";

export type Places = Map<string, [number, number]>;

const MANY = 120; // nodes, whose distances would take minutes
const SIZE = 28; // of a node
const ROWS = ["dumbbell", "parking-lot", "chain", "fishbone"];
const ROUND = ["star", "ring", "mesh", "grid", "four-domain"];

/** How many links each node is away from the nearest of some. */
function distances(drawing: Drawing, from: string[]): Map<string, number> {
  const beside = new Map<string, string[]>(drawing.nodes.map((node) => [node.name, []]));
  for (const link of drawing.links) {
    beside.get(link.a)?.push(link.b);
    beside.get(link.b)?.push(link.a);
  }
  const found = new Map(from.map((name) => [name, 0]));
  const next = [...from];
  for (let at = 0; at < next.length; at++) {
    const here = next[at] as string;
    for (const there of beside.get(here) ?? []) {
      if (found.has(there)) continue;
      found.set(there, (found.get(here) ?? 0) + 1);
      next.push(there);
    }
  }
  return found;
}

/** Routers without hosts above routers with them, twice at least: a fat tree, a campus. */
function isHierarchy(drawing: Drawing): boolean {
  const hosts = drawing.nodes.filter((node) => node.kind === "host").map((node) => node.name);
  const above = distances(drawing, hosts);
  const most = Math.max(0, ...above.values());
  return most >= 3 && drawing.links.every((link) => above.get(link.a) !== above.get(link.b));
}

function isTree(drawing: Drawing): boolean {
  return drawing.links.length < drawing.nodes.length;
}

function directionOf(drawing: Drawing): "RIGHT" | "DOWN" | null {
  if (ROWS.includes(drawing.topology)) return "RIGHT";
  if (!ROUND.includes(drawing.topology)) {
    if (isHierarchy(drawing)) return "DOWN";
    if (isTree(drawing)) return "RIGHT";
  }
  return drawing.nodes.length > MANY && !isTree(drawing) ? "RIGHT" : null;
}

/** Away from the node with most links. */
function outward(drawing: Drawing): (a: string, b: string) => boolean {
  const links = new Map<string, number>();
  for (const name of drawing.links.flatMap((link) => [link.a, link.b]))
    links.set(name, (links.get(name) ?? 0) + 1);
  const [most] = [...links].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const away = distances(drawing, most === undefined ? [] : [most]);
  return (a, b) => (away.get(a) ?? 0) <= (away.get(b) ?? 0);
}

/** The graph as ELK takes it. */
export function elkOf(drawing: Drawing): ElkNode {
  const layered = directionOf(drawing);
  const toward = layered ? order(drawing, layered) : outward(drawing);
  return {
    id: "lab",
    layoutOptions: layered
      ? {
          "elk.algorithm": "layered",
          "elk.direction": layered,
          "elk.spacing.nodeNode": "45",
          "elk.layered.spacing.nodeNodeBetweenLayers": layered === "RIGHT" ? "130" : "90",
          "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
          "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
          "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
        }
      : isTree(drawing)
        ? { "elk.algorithm": "radial", "elk.spacing.nodeNode": drawing.nodes.length > MANY ? "8" : "60" }
        : {
            "elk.algorithm": "stress",
            "elk.stress.desiredEdgeLength": "150",
            "elk.stress.iterationLimit": "300",
          },
    children: drawing.nodes.map((node) => ({ id: node.name, width: SIZE, height: SIZE })),
    edges: drawing.links.map((link) => ({
      id: link.name,
      sources: [toward(link.a, link.b) ? link.a : link.b],
      targets: [toward(link.a, link.b) ? link.b : link.a],
    })),
  };
}

/** Whether a link leads from `a` to `b` in the order of layers. */
function order(drawing: Drawing, direction: "RIGHT" | "DOWN"): (a: string, b: string) => boolean {
  const hosts = new Set(drawing.nodes.filter((node) => node.kind === "host").map((node) => node.name));
  if (direction === "DOWN") {
    const above = distances(drawing, [...hosts]);
    return (a, b) => (above.get(a) ?? 0) >= (above.get(b) ?? 0);
  }
  // Routers from one end to the other; hosts of the first one before it, of the last one behind it, those between by what they do.
  const routers = drawing.nodes.filter((node) => node.kind === "router").map((node) => node.name);
  const inner = {
    ...drawing,
    links: drawing.links.filter((each) => !hosts.has(each.a) && !hosts.has(each.b)),
  };
  const far = [...distances(inner, routers.slice(0, 1)).keys()].at(-1);
  const first = routers.length > 0 && drawing.topology !== "graph" ? routers[0] : far;
  const depth = distances(inner, first === undefined ? [] : [first]);
  const deepest = Math.max(0, ...depth.values());
  const senders = new Set(drawing.pairs.map((pair) => pair.source));
  return (a, b) => {
    if (hosts.has(a) === hosts.has(b)) return (depth.get(a) ?? 0) <= (depth.get(b) ?? 0);
    const [host, router] = hosts.has(a) ? [a, b] : [b, a];
    const at = depth.get(router) ?? 0;
    const before = deepest > 0 && at === 0 ? true : deepest > 0 && at === deepest ? false : senders.has(host);
    return before === (host === a);
  };
}

let elk: Promise<ELK> | null = null;

export async function arranged(drawing: Drawing): Promise<Places> {
  elk ??= import("elkjs/lib/elk-api").then((found) => new found.default({ workerUrl: "/elk.js" }));
  const found = await (await elk).layout(elkOf(drawing));
  return new Map(
    (found.children ?? []).map((each) => [each.id, [Math.round(each.x ?? 0), Math.round(each.y ?? 0)]]),
  );
}
