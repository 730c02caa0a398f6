// Time line arithmetic. `node --test`, of the bundle that build.mjs makes.

import assert from "node:assert/strict";
import test from "node:test";
import { duration, nsOf } from "../common/units";
import { eventsOf, lanesOf, moved, nice, snapped, spanOf, stepOf, ticksOf } from "./times";

const S = 1e9;

test("what is no duration is not read", () => {
  for (const text of ["", "5", "s", "-1s", "1 sec", "1e3s", `\${at}`]) assert.equal(nsOf(text), null, text);
});

test("ticks are round and within the line", () => {
  assert.deepEqual([0.3, 1, 1.1, 21, 50, 51].map(nice), [0.5, 1, 2, 50, 50, 100]);
  for (const span of [1e6, 0.7 * S, 10 * S, 61 * S, 86400 * S]) {
    const ticks = ticksOf(span);
    assert.ok(ticks.length >= 4 && ticks.length <= 10, `${span}: ${ticks}`);
    assert.equal(ticks[0], 0);
    assert.ok((ticks.at(-1) ?? 0) <= span);
  }
});

test("a mark goes to times that are short to write, and stays on the line", () => {
  const span = 10.8 * S;
  assert.equal(stepOf(span), 0.1 * S);
  assert.equal(duration(snapped(4.1234 * S, span)), "4.1s");
  assert.equal(snapped(-5 * S, span), 0);
  assert.ok(snapped(99 * S, span) <= span);
  assert.equal(stepOf(86400 * S), S);
});

test("keys move a mark by a step or by ten", () => {
  const span = 10 * S;
  assert.equal(moved("ArrowRight", false, 5 * S, span), 5.05 * S);
  assert.equal(moved("ArrowLeft", true, 5 * S, span), 4.5 * S);
  assert.equal(moved("ArrowLeft", true, 0.1 * S, span), 0);
  assert.equal(moved("Home", false, 5 * S, span), 0);
  assert.equal(moved("a", false, 5 * S, span), null);
});

const TEXT = `lab: dumbbell
steps: []
events:
  - {at: 5s, link: core, delay: 40ms, direction: forward}
  - {at: \${late}, link: core, down: true}
  - {at: soon, link: core, loss: {gilbert-elliott: {to_bad: 1%}}}
  - {when: {flow: bulk, state: {mode: DRAIN}}, at: 1s, link: core, up: true}
`;

test("events are those of the text, ahead of what the server told", () => {
  const told = [
    { number: 0, at_ns: 1 * S, link: "core", direction: "both", words: "" },
    { number: 1, at_ns: 8 * S, link: "core", direction: "both", words: "" },
  ];
  const found = eventsOf(TEXT, told) ?? [];
  assert.deepEqual(
    found.map((each) => [each.at_ns, each.movable, each.words]),
    [
      [5 * S, true, "delay 40ms →"],
      [8 * S, false, "down"],
      [null, false, "loss gilbert-elliott to_bad 1%"],
      [1 * S, false, "up when flow bulk state mode DRAIN"],
    ],
  );
  assert.equal(eventsOf("a: {", told), null);
  assert.deepEqual(eventsOf("steps: []\n", told), []);
  assert.ok(spanOf(null, found) > 8 * S);
});

test("marks that are close stand below each other", () => {
  const mark = (at: number) => ({ at, letters: 8 });
  assert.deepEqual(lanesOf([mark(0), mark(0.5), mark(0.9)], 0.01), [0, 0, 0]);
  assert.deepEqual(lanesOf([mark(0.5), mark(0.51), mark(0.52), mark(0.61)], 0.01), [0, 1, 2, 0]);
  assert.deepEqual(lanesOf([mark(0.51), mark(0.5)], 0.01), [1, 0]);
  assert.deepEqual(lanesOf([], 0.01), []);
});
