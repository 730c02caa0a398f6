import assert from "node:assert/strict";
import { test } from "node:test";
import type { DrawnLink, Piece, ShownRun } from "../server";
import { changesBy, downAt, drawingAfter, levelFor, momentsIn, placeAt } from "./pieces";

const MS = 1e6;
const way = (rate_bps: number) => ({ rate_bps, delay_ns: 0, limit_bytes: null, words: [] });
const core = (rate_bps: number): DrawnLink => ({
  name: "core",
  a: "r1",
  b: "r2",
  role: "wan",
  forward: way(rate_bps),
  backward: way(rate_bps),
  bottleneck_of: 0,
});
const wire: DrawnLink = { ...core(1), name: "wire", role: "plain", forward: null, backward: null };
const replay = {
  end_ns: 250 * MS,
  levels_ns: [MS, 2 * MS, 5 * MS, 10 * MS],
  bins: 100,
  drawing: { links: [core(1e7), wire] },
  changes: [
    { at_ns: 10, links: [core(5e6)] },
    { at_ns: 20, links: [core(2e6)] },
  ],
  events: [
    { at_ns: 30, kind: "fail", link: "core", words: "" },
    { at_ns: 35, kind: "fail", link: "b", words: "" },
    { at_ns: 40, kind: "mend", link: "core", words: "" },
  ],
} as unknown as ShownRun;
const piece: Piece = {
  begin_ns: 0,
  bin_ns: MS,
  bins: 2,
  links: [
    {
      link: "core",
      direction: "forward",
      capacity_bps: [1e7],
      rate_bps: [3, 4],
      queue_bytes: [5, 6],
      dropped_packets: [0, 7],
      lost_packets: [1, 1],
      marked_packets: [0, 2],
    },
  ],
};

test("a drawn frame misses no bin, and needs none that is finer", () => {
  assert.equal(levelFor(replay.levels_ns, 0), 0);
  assert.equal(levelFor(replay.levels_ns, 4.9 * MS), 1);
  assert.equal(levelFor(replay.levels_ns, 5 * MS), 2);
  assert.equal(levelFor(replay.levels_ns, 1e12), 3);
});

test("a bin has its begin; before the first and behind the end are the first and the last", () => {
  assert.deepEqual(placeAt(replay, 0, MS - 1), { level: 0, piece: 0, bin: 0 });
  assert.deepEqual(placeAt(replay, 0, MS), { level: 0, piece: 0, bin: 1 });
  assert.deepEqual(placeAt(replay, 0, 100 * MS), { level: 0, piece: 1, bin: 0 });
  assert.deepEqual(placeAt(replay, 0, -1), { level: 0, piece: 0, bin: 0 });
  assert.deepEqual(placeAt(replay, 0, 250 * MS), { level: 0, piece: 2, bin: 49 });
});

test("a direction that is not in the piece did nothing, and a wire tells nothing", () => {
  const found = momentsIn(piece, 1, replay.drawing.links);
  assert.deepEqual([...found.keys()].sort(), ["core backward", "core forward"]);
  assert.equal(found.get("core forward")?.rate_bps, 4);
  assert.equal(found.get("core forward")?.dropped_packets, 8);
  assert.equal(found.get("core forward")?.marked_packets, 2);
  assert.equal(found.get("core backward")?.rate_bps, 0);
});

test("the drawing is that after the changes so far", () => {
  const rates = [5, 10, 19, 25].map(
    (at) => drawingAfter(replay, changesBy(replay, at)).links[0]?.forward?.rate_bps,
  );
  assert.deepEqual(rates, [1e7, 5e6, 5e6, 2e6]);
});

test("a link is down from its failure until it is mended", () => {
  assert.deepEqual(
    [29, 30, 36, 40].map((at) => downAt(replay, at)),
    ["", "core", "b\ncore", "b"],
  );
});
