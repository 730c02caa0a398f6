// The scenario that is worked on, and what it stands for.

import { useMemo } from "react";
import { type Document, keep, useDocument } from "../common/document";
import type { ScenarioOutline } from "../server";
import { type Choice, scenarios } from "./api";

const KEY = "ewan-studio-scenario";
export const FRESH = "my-scenario.scenario.yaml";
export const BEGINNING = `# What is sent over a lab, when, and what is varied.
lab:
  topology: dumbbell
  rtt: 20ms
  wan: {rate: 10Mbit/s, buffer: 1BDP}
sweep: {congestion: [cubic, reno]}
steps:
  - {name: load, from: left1, to: right1, for: 10s, congestion: "\${congestion}", bulk: }
events:
  - {at: 5s, link: core, delay: 40ms}
`;

export type ScenarioDocument = Document<ScenarioOutline>;

export function useScenarioDocument(choice: Choice, fail: (why: string) => void): ScenarioDocument {
  const { virtual, scale, point } = choice;
  const kind = useMemo(
    () => ({
      key: KEY,
      first: { name: FRESH, text: BEGINNING },
      describe: async (now: Parameters<typeof scenarios.describe>[0]) => {
        const { outline, refusal } = await scenarios.describe(now, { virtual, scale, point });
        return { found: outline, refusal };
      },
    }),
    [virtual, scale, point],
  );
  return useDocument(kind, fail);
}

/** Another page makes a scenario, which this one then shows. */
export function handOver(name: string, text: string): void {
  keep(KEY, { name, text, tag: null, where: null });
}
