// What a replay's address says: the experiment, the run, what is selected and the moment.
// `#/replay/20260101T000000Z-brief/1/link/core/1.25s`; `-` twice where nothing is selected.

import { hashOf } from "../common/route";
import { NS } from "../common/units";

export type Chosen = { kind: "link" | "node" | "flow"; name: string } | null;

const NOTHING = "-";

export function addressOf(experiment: string, run: string, chosen: Chosen, at_ns: number): string {
  const what = chosen ? [chosen.kind, chosen.name] : at_ns > 0 ? [NOTHING, NOTHING] : [];
  return hashOf("replay", experiment, run, ...what, ...(at_ns > 0 ? [`${at_ns / NS.s}s`] : []));
}

export function chosenIn(words: string[]): { chosen: Chosen; at_ns: number } {
  const [, , kind, name, at] = words;
  const chosen: Chosen =
    (kind === "link" || kind === "node" || kind === "flow") && name ? { kind, name } : null;
  const seconds = Number(at?.replace(/s$/, ""));
  return { chosen, at_ns: Number.isFinite(seconds) ? Math.max(0, Math.round(seconds * NS.s)) : 0 };
}
