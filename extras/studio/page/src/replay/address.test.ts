import assert from "node:assert/strict";
import { test } from "node:test";
import { placeOf } from "../common/route";
import { addressOf, type Chosen, chosenIn } from "./address";

test("an address says what was selected and when, and is read back", () => {
  const cases: [Chosen, number][] = [
    [null, 0],
    [null, 1_250_000_000],
    [{ kind: "link", name: "core" }, 0],
    [{ kind: "flow", name: "3.0" }, 1],
    [{ kind: "link", name: "a/b c" }, 123_456_789],
  ];
  for (const [chosen, at_ns] of cases) {
    const place = placeOf(addressOf("study", "1", chosen, at_ns));
    assert.equal(place.page, "replay");
    assert.deepEqual(place.words.slice(0, 2), ["study", "1"]);
    assert.deepEqual(chosenIn(place.words), { chosen, at_ns });
  }
});

test("what is no time is the begin, and what is no kind selects nothing", () => {
  assert.deepEqual(chosenIn(["study", "1", "link", "core", "soon"]), {
    chosen: { kind: "link", name: "core" },
    at_ns: 0,
  });
  assert.deepEqual(chosenIn(["study", "1", "host", "core", "-5s"]), { chosen: null, at_ns: 0 });
});
