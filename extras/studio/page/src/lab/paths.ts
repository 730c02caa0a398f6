// The way between two hosts: by the plan, and in a lab that is up as the routing tables lead now.

import { useEffect, useMemo } from "react";
import { ask } from "../api";
import { useAnswer } from "../common/asked";
import type { Paths } from "../server";
import type { OnPath } from "./canvas/LinkEdge";

export interface Ends {
  source: string;
  sink: string;
}

export const ways = {
  table: (lab: string, node: string) => ask("get", "/api/live/{lab}/routes/{node}", { words: { lab, node } }),
  now: (lab: string, ends: Ends) =>
    ask("get", "/api/live/{lab}/paths/{source}/{sink}", { words: { lab, ...ends } }),
  planned: (name: string, text: string, ends: Ends) =>
    ask("post", "/api/paths", { body: { name, text, ...ends } }),
};

const EVERY_MS = 1500;
const NOTHING = new Map<string, OnPath>();

/** `plan`: changes when the plan does; `changed`: when links fail or are mended. */
export function usePaths(
  ends: Ends | null,
  lab: string | null,
  name: string,
  text: string,
  plan: string,
  changed: string,
): Paths | null {
  const [found, take] = useAnswer<Paths | null>(null);
  const told = lab === null ? `${plan}` : changed;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a text is asked about when its plan is another one
  useEffect(() => {
    let gone = false;
    if (ends === null) return take(null);
    const now = () =>
      (lab === null ? ways.planned(name, text, ends) : ways.now(lab, ends)).then(
        (paths) => !gone && take(paths),
        () => !gone && take(null),
      );
    now();
    const timer = lab === null ? 0 : window.setInterval(now, EVERY_MS);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [ends, lab, told]);
  return found;
}

/** Which links are on the way there, back, or both. */
export function useOnPath(paths: Paths | null): Map<string, OnPath> {
  return useMemo(() => {
    if (!paths) return NOTHING;
    const found = new Map<string, OnPath>(paths.there.steps.map((step) => [step.link, "there"]));
    for (const { link } of paths.back.steps) found.set(link, found.has(link) ? "both" : "back");
    return found;
  }, [paths]);
}
