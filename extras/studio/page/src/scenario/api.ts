// What the server can be asked of scenarios (extras/studio/server/areas/scenarios.py).

import { ask, type Refusal } from "../api";
import type { Kept } from "../common/document";

export interface Bar {
  start_ns: number;
  end_ns: number | null;
  exact: boolean;
}
export interface StepOutline {
  name: string;
  kind: string;
  role: string;
  who: string;
  words: string;
  after: string[];
  flows: number;
  bars: Bar[];
}
export interface EventOutline {
  number: number;
  at_ns: number;
  link: string;
  direction: string;
  words: string;
}
export interface Outline {
  name: string;
  title: string;
  lab: string;
  point: number;
  varying: string[];
  points: Record<string, string | number>[];
  points_in_all: number;
  seeds: number;
  more: boolean;
  runs: number;
  checked: number;
  scales: string[];
  expected_ns: number;
  longest_ns: number;
  steps: StepOutline[];
  events: EventOutline[];
  links: string[];
}
export interface Choice {
  virtual: boolean;
  scale: string | null;
  point: number;
}

export interface Standing {
  parameters: Record<string, string | number>;
  runs: number;
  became: Record<string, number>;
  error: string;
  results: string[];
}
export interface Progress {
  directory: string;
  status: string;
  stage: string;
  began: string;
  varying: string[];
  metrics: string[];
  points: Standing[];
  points_in_all: number;
  report: boolean;
}

export const scenarios = {
  points: (job: string) => ask<Progress | null>("GET", `/api/jobs/${encodeURIComponent(job)}/points`),
  schema: () => ask<unknown>("GET", "/api/scenario/schema"),
  describe: ({ name, text, where }: Kept, choice: Choice) =>
    ask<{ outline: Outline | null; refusal: Refusal | null }>("POST", "/api/scenario/describe", {
      name,
      text,
      where: where ?? "here",
      ...choice,
    }),
};
