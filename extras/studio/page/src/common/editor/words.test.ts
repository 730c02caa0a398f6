import assert from "node:assert/strict";
import { test } from "node:test";
import { choicesOf, settingsOf } from "./words";

test("a form offers the settings that are written as one word", () => {
  const schema = {
    $defs: {
      DirectionKeys: {
        properties: {
          rate: { anyOf: [{ examples: ["1Gbit/s"] }, {}] },
          queue: { anyOf: [{ $ref: "#/$defs/QueueKeys" }, {}], examples: ["codel"] },
          framing: { anyOf: [{ enum: ["wire", "ip"] }, {}], live: false },
          reorder: { anyOf: [{}, {}] },
          police: { anyOf: [{ $ref: "#/$defs/PoliceKeys" }, {}], examples: ["{rate: 10Mbit/s}", "none"] },
        },
      },
      QueueKeys: { properties: { codel: {} } },
      PoliceKeys: {},
    },
  };
  assert.deepEqual(settingsOf(schema), [
    { name: "rate", example: "1Gbit/s", live: true },
    { name: "queue", example: "codel", live: true },
    { name: "framing", example: "wire", live: false },
    { name: "reorder", example: "true", live: true },
  ]);
  assert.deepEqual(settingsOf(null), []);
});
test("a key offers the words that it takes", () => {
  const schema = {
    properties: { routing: { $ref: "#/$defs/Routing" } },
    $defs: { Routing: { enum: ["static", "ospf"] } },
  };
  assert.deepEqual([choicesOf(schema, "routing"), choicesOf(schema, "name")], [["static", "ospf"], []]);
});
