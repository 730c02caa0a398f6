// The way between two hosts: by the plan, and in a lab that is up as the routing tables lead now.

import { useEffect, useMemo } from "react";
import { ask } from "../api";
import { useAnswer } from "../common/asked";
import type { OnPath } from "./canvas/LinkEdge";

export interface Route {
  to: string;
  via: string;
  interface: string;
  metric: number;
  carries: boolean;
}
export interface Step {
  link: string;
  direction: string;
  a: string;
  b: string;
}
export interface PathWay {
  steps: Step[];
  broken: string;
}
export interface Paths {
  there: PathWay;
  back: PathWay;
}
export interface Ends {
  source: string;
  sink: string;
}

const part = encodeURIComponent;
export const ways = {
  table: (lab: string, node: string) => ask<Route[]>("GET", `/api/live/${part(lab)}/routes/${part(node)}`),
  now: (lab: string, { source, sink }: Ends) =>
    ask<Paths>("GET", `/api/live/${part(lab)}/paths/${part(source)}/${part(sink)}`),
  planned: (name: string, text: string, ends: Ends) =>
    ask<Paths>("POST", "/api/paths", { name, text, ...ends }),
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
