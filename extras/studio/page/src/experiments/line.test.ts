import assert from "node:assert/strict";
import { test } from "node:test";
import type { FigureSpec } from "../server";
import { changed, type Form, formOf, lineOf, ofOneAlone, usual } from "./line";

const spec: FigureSpec = {
  kind: "time",
  what: "goodput",
  of: "each step",
  against: "",
  by: [],
  lines: ["congestion", "rtt"],
  facets: [],
  scale: null,
  values: null,
  points: "mean",
  relative_to: null,
  relative_of: null,
  harm: false,
  bars: false,
  where: [["buffer", "1BDP"]],
  run: 12,
  flows: "ends",
  from_ns: 1_500_000_000,
  to_ns: 20_000_000_000,
  band: true,
  title: "",
  name: "",
};
const form = (more: Partial<Form>): Form => ({ ...formOf(spec), ...more });

test("a line has all clauses that its kind has", () => {
  assert.equal(
    lineOf(form({})),
    "goodput of each step over time, lines congestion and rtt, where buffer=1BDP, run 12, flows ends, from 1.5s, to 20s, band",
  );
});
test("what a kind does not have is left out", () => {
  const metric = form({
    kind: "metric",
    what: "utilisation",
    of: "",
    by: "buffer",
    bars: true,
    points: "all",
  });
  assert.equal(lineOf(metric), "utilisation by buffer, lines congestion and rtt, bars, where buffer=1BDP");
  assert.equal(lineOf(form({ kind: "timeline" })), "timeline, where buffer=1BDP, run 12, from 1.5s, to 20s");
  const map = form({
    kind: "map",
    what: "share",
    of: "cross",
    by: "a",
    by2: "b",
    lines: "a",
    scale: "log",
    where: "",
  });
  assert.equal(lineOf(map), "share of cross by a and b, scale log");
});
test("the metric's axis is logarithmic but for bars", () => {
  const metric = {
    kind: "metric",
    what: "goodput",
    of: "",
    by: "rtt",
    lines: "",
    where: "",
    values: "log",
  } as const;
  assert.equal(lineOf(form(metric)), "goodput by rtt, values log");
  assert.equal(lineOf(form({ ...metric, bars: true })), "goodput by rtt, bars");
});
test("a form is filled of what the server read, and gives the same line again", () => {
  const read = formOf({
    ...spec,
    kind: "metric",
    what: "share of source left1",
    of: "",
    by: ["rtt"],
    lines: [],
    run: null,
  });
  assert.deepEqual([read.what, read.of, read.lines], ["share", "source left1", "none"]);
  assert.equal(formOf({ ...spec, from_ns: null }).from, "");
  assert.match(lineOf(read), /^share of source left1 by rtt, lines none/);
  const relative = {
    ...spec,
    kind: "metric" as const,
    by: ["rtt"],
    relative_to: "reno",
    relative_of: "congestion",
  };
  assert.match(lineOf(formOf(relative)), /, relative to reno of congestion,/);
});
test("a heat map of harm is still one of harm when its form has changed", () => {
  const harm = formOf({
    ...spec,
    kind: "map",
    what: "completion time",
    of: "",
    by: ["rtt", "buffer"],
    lines: null,
    where: [],
    relative_to: "none",
    harm: true,
  });
  assert.equal(lineOf(harm), "completion time by rtt and buffer, harm against none");
});
test("another kind keeps what fits", () => {
  const known = { metrics: ["utilisation", "share"], series: ["goodput", "cwnd"], samples: ["rtt"] };
  const next = changed(form({}), "phase", ["rtt"], known);
  assert.deepEqual([next.what, next.against, next.of, next.lines], ["utilisation", "utilisation", "", ""]);
  assert.equal(changed(form({}), "map", ["rtt", "buffer"], known).by2, "buffer");
  assert.equal(changed(form({ what: "cwnd" }), "time", [], known).what, "cwnd");
});
test("the first figure is the scenario's, or of what varies", () => {
  assert.equal(usual(["timeline"], ["rtt"], []), "timeline");
  assert.equal(usual([], ["rtt"], ["aggregate goodput"]), "goodput by rtt");
  assert.equal(usual([], ["rtt"], []), "goodput over time");
});
test("of one experiment alone, nothing is grouped by the experiment", () => {
  assert.equal(ofOneAlone("goodput by rtt, lines experiment, scale log"), "goodput by rtt, scale log");
  assert.equal(ofOneAlone("rtt over time, facets rtt and experiment"), "rtt over time, facets rtt");
  assert.equal(
    ofOneAlone("rtt over time, lines experiment and rtt, run 1"),
    "rtt over time, lines rtt, run 1",
  );
  assert.equal(ofOneAlone("goodput by rtt, lines congestion"), "goodput by rtt, lines congestion");
});
