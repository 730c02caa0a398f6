// What the server tells of experiments (extras/studio/server/areas/experiments.py).

import { ask, part } from "../api";

export interface Row {
  directory: string;
  status: string;
  scenario: string;
  began: string;
  clock: string;
  runs: string;
  disturbed: string;
  verified: string;
  result: string;
  name: string;
  tags: string[];
  note: string;
}
export interface Run {
  number: number;
  point: string[];
  seed: number;
  status: string;
  error: string;
  disturbed: string;
  bottleneck: string;
  certificate: string;
  verified: boolean | null;
  measured: boolean;
}
export interface Certified {
  id: string;
  runs: number[];
  passed: boolean | null; // null: it cannot be read
  words: string;
}
export interface Table {
  title: string;
  columns: string[];
  rows: string[][];
}
export interface Comparison {
  value: string;
  where: string;
  metric: string;
  reference: string;
  here: string;
  difference: string;
  p: string;
  test: string;
  effect: string;
  n: string;
  outcome: string;
}
export interface Experiment {
  name: string;
  directory: string;
  title: string;
  called: string;
  tags: string[];
  note: string;
  scenario: string;
  about: string[];
  source: string;
  status: string;
  clock: string;
  warnings: string[];
  so_far: string;
  facts: Record<string, string>;
  host: Record<string, string>;
  parameters: [string, string][];
  varied: string[];
  values: Record<string, string[]>;
  metrics: string[];
  runs: Run[];
  few_runs: string;
  certificates: Certified[];
  more_certificates: number; // that are not among these
  disturbances: { run: number; time: string; words: string; marks: boolean }[];
  more_disturbances: number;
  watched: boolean;
  tables: Table[];
  comparisons: Comparison[];
  figures: string[];
  asked: string[]; // figures of the scenario, as lines
  report: boolean;
  text: string;
}
export interface Certificate {
  id: string;
  lab: string;
  passed: boolean;
  policy: string;
  words: string;
  circumstances: string[];
  advice: string[];
  columns: string[];
  rows: string[][];
}
export type FigureKind =
  | "metric"
  | "map"
  | "phase"
  | "time"
  | "flow chart"
  | "cdf"
  | "ccdf"
  | "box"
  | "timeline";
export interface Spec {
  kind: FigureKind;
  what: string;
  of: string;
  against: string;
  by: string[];
  lines: string[] | null;
  facets: string[];
  scale: string | null;
  values: string | null;
  points: string;
  relative_to: string | null;
  relative_of: string | null;
  harm: boolean;
  bars: boolean;
  where: [string, string][];
  run: number | null;
  flows: string | null;
  from_ns: number | null;
  to_ns: number | null;
  band: boolean;
  title: string;
}
export interface Drawn {
  line: string;
  spec: Spec;
  name: string;
  title: string;
  caption: string;
  svg: string;
  shown: string; // with the colours of a light and of a dark page
  csv: string;
  files: Record<string, string>; // base64
  command: string;
}
export interface Words {
  metrics: { name: string; unit: string; meaning: string; group: string }[];
  series: { name: string; unit: string; meaning: string; of: string }[];
  samples: { name: string; unit: string; meaning: string; of: string }[];
}
export interface Difference {
  what: string;
  first: string;
  second: string;
}
export interface Side {
  name: string;
  title: string;
  scenario: string;
  status: string;
  clock: string;
  so_far: string;
  started: string | null;
  warnings: string[];
  varied: string[];
  figures: string[];
}
export interface Compared {
  sides: [Side, Side];
  parameters: Difference[];
  labs: Difference[];
  certificates: Difference[];
  circumstances: Difference[];
  scenarios: string[];
  rows: Record<
    "point" | "metric" | "first" | "second" | "n" | "difference" | "test" | "p" | "effect" | "outcome",
    string
  >[];
  lines: string[];
  metrics: string[];
  command: string;
}
export interface Labels {
  tags?: string[]; // +TAG, -TAG
  name?: string;
  note?: string;
}

const one = (name: string) => `/api/experiments/${part(name)}`;

export const results = {
  every: () => ask<Row[]>("GET", "/api/experiments"),
  one: (name: string) => ask<Experiment>("GET", one(name)),
  certificate: (name: string, id: string) => ask<Certificate>("GET", `${one(name)}/certificates/${part(id)}`),
  label: (name: string, labels: Labels) =>
    ask<{ name: string; tags: string[]; note: string }>("POST", `${one(name)}/labels`, labels),
  words: () => ask<Words>("GET", "/api/figure"),
  figure: (
    experiment: string,
    figure: string,
    more: { style?: string; kind?: string; beside?: string } = {},
  ) => ask<Drawn>("POST", "/api/figure", { experiment, figure, ...more }),
  compared: (first: string, second: string) =>
    ask<Compared>("GET", `/api/compare/${part(first)}/${part(second)}`),
};

/** The address of a file of an experiment. */
export const fileOf = (name: string, path: string) => `/results/${part(name)}/${path}`;

export const nameOf = (row: Row) => row.directory.split("/").pop() ?? "";
