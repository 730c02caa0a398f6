// Nodes and links of a network that is drawn by hand come, go and get other names.

import assert from "node:assert/strict";
import test from "node:test";
import { GRAPH, valueAt } from "../common/edit";
import { withLink, withName, withNode, withoutLink, withoutNode } from "./graph";

test("a node is added under a name that nobody has, beside another", () => {
  const [text, name] = withNode(GRAPH, "host", ["h1"], "r1");
  assert.equal(name, "h2");
  assert.ok(text.includes("hosts: [a, b, h2]") && text.includes("- {between: [r1, h2]}"));
});

test("a node goes with its links, its pairs and its place", () => {
  const text = withoutNode(`${withLink(GRAPH, "a", "r2")}layout: {a: [1, 2], b: [3, 4]}\n`, "a");
  assert.ok(!/\ba\b/.test(text.replace("# A network", "")), text);
  assert.deepEqual(valueAt(text, ["topology", "graph", "hosts"]), ["b"]);
  assert.equal((valueAt(text, ["topology", "graph", "links"]) as unknown[]).length, 2);
  assert.ok(text.startsWith("# A network drawn by hand.") && text.includes("layout: {b: [3, 4]}"));
});

test("a link goes by its name, or by its ends where it has none", () => {
  assert.ok(!withoutLink(GRAPH, "core").includes("core"));
  assert.ok(!withoutLink(GRAPH, "a-r1").includes("[a, r1]"));
  assert.equal(withoutLink(GRAPH, "nothing"), GRAPH);
});

test("another name, wherever the old one stands", () => {
  const text = withName(`${GRAPH}layout: {r1: [1, 2]}\n`, "r1", "paris");
  assert.ok(!/\br1\b/.test(text));
  for (const part of ["routers: [paris, r2]", "[a, paris]", "[paris, r2], name: core", "paris: [1, 2]"])
    assert.ok(text.includes(part), part);
});
