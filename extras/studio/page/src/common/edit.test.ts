// Changes of a text leave all else of it as it was. `node --test`, of the bundle that build.mjs makes.

import assert from "node:assert/strict";
import test from "node:test";
import { GRAPH, linesOf, valueAt, withAppended, withLayout, without, withValue } from "./edit";

const SATELLITE = `# A satellite.
topology: dumbbell
rtt: 560ms
mtu: 1400               # what is left of 1500 in the tunnel

wan:
  rate: 50Mbit/s        # forward
  loss:
    gilbert-elliott:    # bursts
      to_bad: 0.1%
  backward:
    rate: 5Mbit/s
    loss: 0.01%
`;

const cases: [string, string, (string | number)[], unknown, string][] = [
  ["a value alone", SATELLITE, ["rtt"], "20ms", SATELLITE.replace("560ms", "20ms")],
  [
    "a value before a comment",
    SATELLITE,
    ["wan", "rate"],
    "1Gbit/s",
    SATELLITE.replace("50Mbit/s", "1Gbit/s"),
  ],
  ["a new key of a group", SATELLITE, ["wan", "backward", "delay"], "3ms", `${SATELLITE}    delay: 3ms\n`],
  ["a new group", SATELLITE, ["links", "core", "loss"], "1%", `${SATELLITE}links: {core: {loss: 1%}}\n`],
  ["a group of one line", "a: {b: 1}\n", ["a", "c"], 2, "a: {b: 1, c: 2}\n"],
  ["groups in a line", "l: {x: {d: 1ms}}\n", ["l", "x", "r"], "1Gbit/s", "l: {x: {d: 1ms, r: 1Gbit/s}}\n"],
  ["another one beside", "l: {x: {d: 1ms}}\n", ["l", "y", "d"], "2ms", "l: {x: {d: 1ms}, y: {d: 2ms}}\n"],
  ["an empty group", "a: {}\n", ["a", "b"], 1, "a: {b: 1}\n"],
  [
    "a key without a value",
    "wan:\nmtu: 1500\n",
    ["wan", "rate"],
    "1Gbit/s",
    "wan: {rate: 1Gbit/s}\nmtu: 1500\n",
  ],
  ["a template's word", "topology: star\n", ["topology", "star", "arms"], 5, "topology: {star: {arms: 5}}\n"],
  ["no line at the end", "rtt: 1ms", ["mtu"], 9000, "rtt: 1ms\nmtu: 9000\n"],
  ["nothing yet", "", ["rtt"], "1ms", "rtt: 1ms\n"],
  ["words that need quotes", "a: 1\n", ["a"], "{x: y}", 'a: "{x: y}"\n'],
  ["positions", "topology: ring\n", ["layout", "r1"], [-3, 7], "topology: ring\nlayout: {r1: [-3, 7]}\n"],
  [
    "a link of a graph",
    GRAPH,
    ["topology", "graph", "links", 2, "delay"],
    "5ms",
    GRAPH.replace("10ms", "5ms"),
  ],
  ["no YAML", "a: {\n", ["a"], 1, "a: {\n"],
];
for (const [name, text, path, value, expected] of cases) {
  test(`a value is set: ${name}`, () => assert.equal(withValue(text, path, value), expected));
}

test("what was set is found again, whatever was there", () => {
  for (const text of [SATELLITE, GRAPH, "", "topology: star\n", "links: {core: {rate: 1Gbit/s}}\n"]) {
    const changed = withValue(
      withValue(text, ["links", "core", "delay"], "7ms"),
      ["links", "core", "loss"],
      "2%",
    );
    assert.equal(valueAt(changed, ["links", "core", "delay"]), "7ms");
    assert.equal(valueAt(changed, ["links", "core", "loss"]), "2%");
    assert.equal(changed, withValue(changed, ["links", "core", "loss"], "2%"));
  }
});

test("lists grow at their end, in a line and below each other", () => {
  const more = withAppended(
    withAppended(GRAPH, ["topology", "graph", "hosts"], "h1"),
    ["topology", "graph", "links"],
    {
      between: ["r1", "h1"],
    },
  );
  assert.equal(
    more,
    GRAPH.replace("[a, b]\n    routers", "[a, b, h1]\n    routers").replace(
      "delay: 10ms}\n",
      "delay: 10ms}\n      - {between: [r1, h1]}\n",
    ),
  );
  assert.deepEqual(
    valueAt(withAppended("topology: {graph: {}}\n", ["topology", "graph", "hosts"], "a"), ["topology"]),
    {
      graph: { hosts: ["a"] },
    },
  );
});

test("what is taken away leaves the comments of the rest", () => {
  const left = without(SATELLITE, ["wan", "backward"]);
  assert.equal(valueAt(left, ["wan", "backward"]), undefined);
  for (const comment of ["# A satellite.", "# what is left", "# bursts"])
    assert.ok(left.includes(comment), comment);
});

const EVENTS = `# Two links.
sweep: {buffer: [10pkt, \${most}]}   # several
events:
  # first
  - {at: 5s, link: core, delay: \${delay}}   # later
  - at: 6s      # another form
    link: core
    down: true

  - {at: 7s, link: core, up: true}
metrics: [goodput]
`;

test("what is taken away takes its lines alone", () => {
  const first = `  - {at: 5s, link: core, delay: \${delay}}   # later\n`;
  const second = "  - at: 6s      # another form\n    link: core\n    down: true\n";
  assert.equal(without(EVENTS, ["events", 0]), EVENTS.replace(first, ""));
  assert.equal(without(EVENTS, ["events", 1]), EVENTS.replace(second, ""));
  assert.equal(without(EVENTS, ["events", 1, "at"]), EVENTS.replace("at: 6s      # another form\n    ", ""));
  assert.equal(without(EVENTS, ["events", 0, "link"]), EVENTS.replace("link: core, delay", "delay"));
  assert.equal(without(EVENTS, ["sweep", "buffer", 1]), EVENTS.replace(`, \${most}`, ""));
  assert.equal(without(EVENTS, ["metrics", 0]), EVENTS.replace("metrics: [goodput]\n", ""));
  assert.equal(without(EVENTS, ["none"]), EVENTS);
  const none = without(without(without(EVENTS, ["events", 2]), ["events", 1]), ["events", 0]);
  assert.equal(valueAt(none, ["events"]), undefined);
});

test("parameters may stand where YAML has no braces", () => {
  assert.equal(valueAt(EVENTS, ["events", 0, "delay"]), `\${delay}`);
  const later = withValue(EVENTS, ["events", 0, "at"], "5.5s");
  assert.equal(later, EVENTS.replace("at: 5s", "at: 5.5s"));
  const more = withAppended(EVENTS, ["events"], { at: "8s", link: "core", rate: "1Mbit/s" });
  assert.ok(more.includes("up: true}\n  - {at: 8s, link: core, rate: 1Mbit/s}\nmetrics"));
});

test("lines of a value", () => {
  assert.deepEqual(linesOf(EVENTS, ["events", 0]), [5, 5]);
  assert.deepEqual(linesOf(EVENTS, ["events", 1]), [6, 8]);
  assert.equal(linesOf(EVENTS, ["steps"]), null);
});

test("places are written a line each, over those that were there", () => {
  const text = withLayout(
    "layout: {a: [1, 2]}\ntopology: ring # r\n",
    new Map([
      ["a", [0, 0]],
      ["on", [-5, 7]],
    ]),
  );
  assert.equal(text, "topology: ring # r\nlayout:\n  a: [0, 0]\n  on: [-5, 7]\n");
  assert.equal(without(text, ["layout"]), "topology: ring # r\n");
});
