// Sides of a lab, and what is left when they are folded.

import assert from "node:assert/strict";
import test from "node:test";
import type { Drawing, DrawnLink, DrawnNode } from "../../server";
import { folded, groupsOf } from "./groups";

const node = (name: string, kind: DrawnNode["kind"]): DrawnNode => ({ name, kind, x: name.length, y: 10 });
const sides = ["left", "right"].flatMap((side) => [1, 2, 3].map((number) => `${side}${number}`));
const DUMBBELL: Drawing = {
  lab: "x",
  topology: "dumbbell",
  routing: "static",
  plan_sha256: "",
  nodes: [...sides.map((name) => node(name, "host")), node("r1", "router"), node("r2", "router")],
  links: [["r1", "r2"], ...sides.map((name) => [name, name.startsWith("left") ? "r1" : "r2"])].map(
    ([a, b]) => ({ name: `${a}-${b}`, a, b, role: "wan" }) as DrawnLink,
  ),
  pairs: [],
};

test("a dumbbell has two sides, by their names", () => {
  assert.deepEqual(
    groupsOf(DUMBBELL).map((each) => [each.name, each.at, each.members.length]),
    [
      ["left", "r1", 3],
      ["right", "r2", 3],
    ],
  );
});

test("a side that is folded is one node, in the middle of its hosts, on one line", () => {
  const [left] = groupsOf(DUMBBELL);
  assert.ok(left);
  const found = folded(DUMBBELL, [left]);
  assert.equal(found.nodes.length, 6);
  assert.deepEqual(found.nodes.at(-1), { name: "side:left", kind: "host", x: 5, y: 10 });
  assert.deepEqual(
    found.links.map((link) => [link.a, link.b]).filter(([a]) => a === "side:left"),
    [["side:left", "r1"]],
  );
  assert.equal(found.links.length, 5);
});
