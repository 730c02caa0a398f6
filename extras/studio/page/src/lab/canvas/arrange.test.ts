// ELK gets networks in the order in which people read them.

import assert from "node:assert/strict";
import test from "node:test";
import type { Kind } from "../../api";
import type { Drawing, DrawnLink } from "../../server";
import { elkOf } from "./arrange";

function drawing(topology: string, links: [string, string][], pairs: [string, string][]): Drawing {
  const names = [...new Set(links.flat())];
  const kind = (name: string): Kind =>
    /^(r|hub|agg|top|edge)/.test(name) && !name.startsWith("right") ? "router" : "host";
  return {
    lab: "x",
    topology,
    routing: "static",
    plan_sha256: "",
    nodes: names.map((name) => ({ name, kind: kind(name), x: 0, y: 0 })),
    links: links.map(([a, b]) => ({ name: `${a}-${b}`, a, b, role: "wan" }) as DrawnLink),
    pairs: pairs.map(([source, sink]) => ({ source, sink }) as Drawing["pairs"][number]),
  };
}
const ways = (of: Drawing) => (elkOf(of).edges ?? []).map((each) => `${each.sources[0]}>${each.targets[0]}`);

test("a dumbbell's left side is left", () => {
  const found = ways(
    drawing(
      "dumbbell",
      [
        ["r1", "r2"],
        ["left1", "r1"],
        ["right1", "r2"],
      ],
      [["left1", "right1"]],
    ),
  );
  assert.deepEqual(found, ["r1>r2", "left1>r1", "r2>right1"]);
});

test("a parking lot's cross traffic enters before its router and leaves behind it", () => {
  const found = ways(
    drawing(
      "parking-lot",
      [
        ["r1", "r2"],
        ["r2", "r3"],
        ["in2", "r2"],
        ["out1", "r2"],
      ],
      [["in2", "out1"]],
    ),
  );
  assert.deepEqual(found.slice(2), ["in2>r2", "r2>out1"]);
});

test("a fat tree stands on its hosts, a ring has no layers", () => {
  const tree = drawing(
    "graph",
    [
      ["a", "edge1"],
      ["b", "edge2"],
      ["edge1", "agg1"],
      ["edge2", "agg2"],
      ["agg1", "top1"],
      ["agg2", "top1"],
      ["agg1", "top2"],
      ["agg2", "top2"],
    ],
    [],
  );
  assert.equal(elkOf(tree).layoutOptions?.["elk.direction"], "DOWN");
  assert.ok(ways(tree).includes("top1>agg1") && ways(tree).includes("edge1>a"));
  const ring = drawing(
    "ring",
    [
      ["r1", "r2"],
      ["r2", "r3"],
      ["r3", "r1"],
    ],
    [],
  );
  assert.equal(elkOf(ring).layoutOptions?.["elk.algorithm"], "stress");
});
