// Quantities are written as Python writes them (extras/studio/tests/test_quantities.py). `node --test`, of the bundle that build.mjs makes.

import assert from "node:assert/strict";
import test from "node:test";
import known from "./quantities.json";
import { duration, nsOf, rate, size, time } from "./units";

const written = (texts: Record<string, string>, write: (amount: number) => string) =>
  Object.fromEntries(Object.keys(texts).map((amount) => [amount, write(Number(amount))]));

test("measured amounts are those of Python", () => {
  assert.deepEqual(written(known.about.rate, rate), known.about.rate);
  assert.deepEqual(written(known.about.size, size), known.about.size);
  assert.deepEqual(written(known.about.time, time), known.about.time);
});

test("durations are those of Python, and are read again", () => {
  assert.deepEqual(written(known.exact, duration), known.exact);
  for (const [ns, text] of Object.entries(known.exact)) assert.equal(nsOf(text), Number(ns));
  assert.deepEqual(
    [time(0), duration(0), nsOf("0s"), nsOf("20 µs"), nsOf("2min")],
    ["0s", "0s", 0, 20_000, null],
  );
});
