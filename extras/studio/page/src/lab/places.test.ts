// A node of a network that is drawn by hand stays where it is, and is drawn while the text is no lab yet.

import assert from "node:assert/strict";
import test from "node:test";
import { GRAPH } from "../common/edit";
import type { Drawing } from "../server";
import { withNode } from "./graph";
import { freePlace, Standing, unfinished } from "./places";

const at = (drawing: Drawing | null, name: string): [number, number] => {
  const node = drawing?.nodes.find((each) => each.name === name);
  return [node?.x ?? Number.NaN, node?.y ?? Number.NaN];
};

/** As the server draws a text: a line of nodes, in another order each time. */
function served(text: string, turn: number): Drawing {
  const drawing = unfinished(text, null) as Drawing;
  const nodes = drawing.nodes.map((node, number) => ({ ...node, x: (turn ? -1 : 1) * 200 * number, y: 0 }));
  return { ...drawing, nodes, plan_sha256: "x" };
}

test("a text that names a router without a link is drawn, with the router", () => {
  const [text, name] = withNode(GRAPH, "router", [], null);
  const drawing = unfinished(text, null);
  assert.equal(name, "r3");
  assert.deepEqual(drawing?.nodes.map((node) => `${node.kind} ${node.name}`).sort(), [
    "host a",
    "host b",
    "router r1",
    "router r2",
    "router r3",
  ]);
  assert.deepEqual(drawing?.links.map((link) => link.name).sort(), ["a-r1", "b-r2", "core"]);
});

test("what is no graph of names is not drawn by its text", () => {
  for (const text of [
    "topology: dumbbell\n",
    "topology: {graph: {hosts: [{x: 1}]}}\n",
    "topology: {graph\n",
    "",
  ])
    assert.equal(unfinished(text, null), null);
  const text =
    "topology: {graph: {hosts: [a, b], links: [{between: [a]}, {between: [a, c]}, 5, null, {between: x}]}}";
  assert.deepEqual(unfinished(text, null)?.links, []);
});

test("whatever comes, nodes stay where they are", () => {
  const standing = new Standing();
  const first = standing.placed(served(GRAPH, 0), GRAPH, "x", true);
  const [text] = withNode(GRAPH, "router", [], null);
  const refused = standing.placed(unfinished(text, first) as Drawing, text, "x", false);
  const [whole] = withNode(text, "host", [], "r3");
  const later = standing.placed(served(whole, 1), whole, "x", true);
  for (const name of ["a", "b", "r1", "r2"]) {
    assert.deepEqual(at(refused, name), at(first, name));
    assert.deepEqual(at(later, name), at(first, name));
  }
  assert.deepEqual(at(later, "r3"), at(refused, "r3"));
  const moved = standing.placed(served(whole, 1), `${whole}layout: {a: [7, 8]}\n`, "x", false);
  assert.deepEqual(at(moved, "a"), [7, 8]);
  assert.deepEqual(at(standing.placed(served(whole, 1), whole, "x", true), "a"), at(first, "a")); // undone
});

test("another document, and places that are forgotten, stand where the server puts them", () => {
  const standing = new Standing();
  standing.placed(served(GRAPH, 0), GRAPH, "x", true);
  assert.deepEqual(at(standing.placed(served(GRAPH, 1), GRAPH, "y", true), "b"), at(served(GRAPH, 1), "b"));
  standing.forget();
  assert.deepEqual(at(standing.placed(served(GRAPH, 0), GRAPH, "y", true), "b"), at(served(GRAPH, 0), "b"));
});

test("a free place has room around it", () => {
  const taken = new Map<string, [number, number]>([["a", [0, 0]]]);
  for (let number = 0; number < 60; number++) {
    const [x, y] = freePlace(`n${number}`, [{ a: "a", b: `n${number}` }], taken);
    for (const [left, top] of taken.values()) assert.ok(Math.hypot(x - left, y - top) >= 69);
    taken.set(`n${number}`, [x, y]);
  }
});
