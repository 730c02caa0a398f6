// Sides of a lab: hosts that hang on the same router or switch. They are drawn in a box with a name, and can be folded into
// one node. Pure: they follow from the drawing, and the description says nothing of them.

import type { Drawing, DrawnLink, DrawnNode } from "../../server";

export interface Group {
  name: string;
  at: string; // the router or switch
  members: string[];
}
export const LEAST = 3; // fewer need no box
const FOLDED = "side:";

/** The letters with which all names begin: `left` of left1, left2. */
function shared(names: string[]): string {
  const [first = "", ...rest] = names;
  let length = first.length;
  for (const name of rest) while (!name.startsWith(first.slice(0, length))) length -= 1;
  return first.slice(0, length).replace(/[\d-]+$/, "");
}

export function groupsOf(drawing: Drawing): Group[] {
  const hosts = new Set(drawing.nodes.filter((node) => node.kind === "host").map((node) => node.name));
  const by = new Map<string, string[]>();
  for (const link of drawing.links) {
    const [host, at] = hosts.has(link.a) ? [link.a, link.b] : [link.b, link.a];
    if (!hosts.has(host) || hosts.has(at)) continue;
    by.set(at, [...(by.get(at) ?? []), host]);
  }
  const found = [...by]
    .filter(([, members]) => members.length >= LEAST && members.length < hosts.size)
    .map(([at, members]) => ({ name: shared(members) || `hosts of ${at}`, at, members }));
  const times = (name: string) => found.filter((each) => each.name === name).length;
  return found.map((each) => (times(each.name) > 1 ? { ...each, name: `${each.name} at ${each.at}` } : each));
}

export const foldedName = (group: Group): string => `${FOLDED}${group.name}`;

/** A drawing in which some groups are one node each, joined to their router by one line. */
export function folded(drawing: Drawing, groups: Group[]): Drawing {
  if (groups.length === 0) return drawing;
  const within = new Map(groups.flatMap((group) => group.members.map((each) => [each, group])));
  const middle = (group: Group): DrawnNode => {
    const members = drawing.nodes.filter((node) => group.members.includes(node.name));
    const mean = (of: (node: DrawnNode) => number) =>
      members.reduce((sum, node) => sum + of(node), 0) / Math.max(1, members.length);
    return { name: foldedName(group), kind: "host", x: mean((node) => node.x), y: mean((node) => node.y) };
  };
  const line = (group: Group): DrawnLink => ({
    name: foldedName(group),
    a: foldedName(group),
    b: group.at,
    role: "plain",
    forward: null,
    backward: null,
    bottleneck_of: 0,
  });
  return {
    ...drawing,
    nodes: [...drawing.nodes.filter((node) => !within.has(node.name)), ...groups.map(middle)],
    links: [
      ...drawing.links.filter((link) => !within.has(link.a) && !within.has(link.b)),
      ...groups.map(line),
    ],
  };
}
