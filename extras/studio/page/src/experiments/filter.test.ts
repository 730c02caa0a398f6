import assert from "node:assert/strict";
import { test } from "node:test";
import { placeOf, withQuery } from "../common/route";
import type { ExperimentRow } from "../server";
import { filtered, queryOf, tagsOf, wantedOf } from "./filter";

const row = (more: Partial<ExperimentRow>): ExperimentRow => ({
  directory: "results/20260101T000000Z-x",
  status: "complete",
  scenario: "x",
  began: "2026-01-01T00:00:00+00:00",
  clock: "virtual",
  runs: "4/4",
  disturbed: "",
  verified: "yes",
  result: "",
  name: "",
  tags: [],
  note: "",
  ...more,
});
const rows = [
  row({ name: "old", tags: ["figure", "draft"], runs: "10/10" }),
  row({
    name: "new",
    began: "2026-02-01T00:00:00+00:00",
    clock: "live",
    tags: ["figure"],
    note: "of the Satellite",
  }),
  row({ name: "broken", began: "", status: "not readable", runs: "" }),
];
const names = (asked: string) =>
  filtered(rows, wantedOf(new URLSearchParams(asked))).map((each) => each.name);

test("the newest are first, and what cannot be read is last", () =>
  assert.deepEqual(names(""), ["new", "old", "broken"]));
test("by tag, clock, status and every word of a text", () => {
  assert.deepEqual(names("tag=figure"), ["new", "old"]);
  assert.deepEqual(names("tag=figure&clock=virtual"), ["old"]);
  assert.deepEqual(names("status=not readable"), ["broken"]);
  assert.deepEqual(names("text=satellite new"), ["new"]);
  assert.deepEqual(names("text=satellite old"), []);
});
test("sorted by name and by runs, either way", () => {
  assert.deepEqual(names("sort=name"), ["broken", "new", "old"]);
  assert.deepEqual(names("sort=-name"), ["old", "new", "broken"]);
  assert.deepEqual(names("sort=runs"), ["old", "new", "broken"]);
  assert.deepEqual(names("sort=nothing"), ["new", "old", "broken"]);
});
test("what is wanted survives the address", () => {
  const wanted = {
    text: "a&b?c #",
    tag: "",
    status: "complete",
    clock: "live",
    sort: "runs" as const,
    up: true,
  };
  const place = placeOf(withQuery("#/experiments", queryOf(wanted)));
  assert.deepEqual([place.page, place.words, wantedOf(place.query)], ["experiments", [], wanted]);
  assert.equal(withQuery("#/experiments", queryOf(wantedOf(new URLSearchParams()))), "#/experiments");
});
test("tags of all, each once", () => assert.deepEqual(tagsOf(rows), ["draft", "figure"]));
