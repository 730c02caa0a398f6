import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection } from "../../server";
import { type FlowCourses, KEPT_S, largest, withLook } from "./courses";

const flow = (id: string, sent_bps: number | null): Connection => ({
  id,
  node: "left1",
  port: 1,
  peer: "right1",
  peer_port: 2,
  congestion: "cubic",
  sent_bps,
  received_bps: 0,
  cwnd_segments: 10,
  cwnd_bytes: 14480,
  rtt_ns: 5,
  min_rtt_ns: null,
  retransmitted_segments: 0,
});

test("a course is of the last minute, and ends with its flow", () => {
  let courses: FlowCourses = new Map();
  for (let at = 0; at <= 2 * KEPT_S; at += 1)
    courses = withLook(courses, [flow("a", at), ...(at < 3 ? [flow("b", null)] : [])], at);
  const a = courses.get("a");
  assert.equal(a?.at[0], KEPT_S + 1);
  assert.equal(a?.at.at(-1), 2 * KEPT_S);
  assert.deepEqual(a?.sent, a?.at);
  assert.equal(a?.rtt.length, a?.at.length);
  assert.equal(courses.has("b"), false);
});

test("a flow that comes again after a pause begins anew", () => {
  const before = withLook(new Map(), [flow("a", 1)], 0);
  assert.deepEqual(withLook(before, [flow("a", 2)], KEPT_S + 1).get("a")?.sent, [2]);
});

test("the flow that moves most is shown, until another one moves twice as much or it is gone", () => {
  const two = (a: number, b: number) => withLook(new Map(), [flow("a", a), flow("b", b)], 0);
  assert.equal(largest(new Map(), null), null);
  assert.equal(largest(two(1, 5), null), "b");
  assert.equal(largest(two(9, 5), "b"), "b");
  assert.equal(largest(two(11, 5), "b"), "a");
  assert.equal(largest(two(0, 0), "b"), "b");
  assert.equal(largest(withLook(new Map(), [flow("c", null)], 0), "b"), "c");
});
