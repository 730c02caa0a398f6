import assert from "node:assert/strict";
import { test } from "node:test";
import { type Looked, lookedOf, queryOf } from "./looked";

function again(looked: Looked): Looked {
  return lookedOf(new URLSearchParams(queryOf(looked)));
}

test("what is looked at comes back from the address", () => {
  const ends = { source: "left 1", sink: "right&1" };
  for (const looked of [
    { selected: null, ends: null },
    { selected: { kind: "link", name: "core=1" }, ends: null },
    { selected: { kind: "node", name: "left1" }, ends },
    { selected: null, ends },
  ] satisfies Looked[])
    assert.deepEqual(again(looked), looked);
});

test("several nodes are not in the address, nor is half of a pair", () => {
  assert.deepEqual(queryOf({ selected: { kind: "nodes", names: ["a", "b"] }, ends: null }), {});
  assert.deepEqual(lookedOf(new URLSearchParams("from=left1")), { selected: null, ends: null });
});
