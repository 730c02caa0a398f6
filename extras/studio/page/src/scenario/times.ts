// Arithmetic of the time line: how far it goes, where its ticks are, to which times a mark may be moved. Pure.

import { valueAt } from "../common/edit";
import { NS, nsOf } from "../common/units";
import type { EventOutline, ScenarioOutline } from "../server";

const LEAST_NS = NS.ms;
const BEYOND = 1.08; // of what is known to happen, so that marks can be moved past the end
const MOST_TICKS = 9;
const WORDS_FIT = 0.96; // of the line, up to where a tick's words have room
const GRID = 200; // steps that the mouse finds, about

/** The next number of 1, 2, 5, 10, … that is at least so large. */
export function nice(least: number): number {
  const size = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * size).find((each) => each >= least * (1 - 1e-9)) ?? 10 * size;
}

/** How far the line goes, in ns. */
export function spanOf(outline: ScenarioOutline | null, events: Placed[]): number {
  const ends = (outline?.steps ?? []).flatMap((step) =>
    step.bars.map((bar) => Math.max(bar.end_ns ?? 0, bar.start_ns)),
  );
  const most = Math.max(outline?.expected_ns ?? 0, ...ends, ...events.map((each) => each.at_ns ?? 0));
  return Math.max(most, LEAST_NS) * BEYOND;
}

export function ticksOf(span: number): number[] {
  const every = nice(span / MOST_TICKS);
  return Array.from({ length: Math.floor((span * WORDS_FIT) / every) + 1 }, (_, at) => at * every);
}

/** From one time to the next that a mark can be moved to. */
export const stepOf = (span: number): number => Math.min(nice(span / GRID), NS.s);

/** A time on the line that can be written shortly. */
export function snapped(ns: number, span: number): number {
  const step = stepOf(span);
  return Math.min(Math.max(Math.round(ns / step), 0) * step, Math.floor(span / step) * step);
}

/** By so much a key moves a mark; null: it is no such key. */
export function moved(key: string, large: boolean, at: number, span: number): number | null {
  const step = stepOf(span) * (large ? 10 : 1);
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return Math.max(at - step, 0);
    case "ArrowRight":
    case "ArrowUp":
      return at + step;
    case "Home":
      return 0;
    default:
      return null;
  }
}

/** In which lane each mark stands, so that words of marks that are close do not lie over each other. `wide`: of the line, what a letter takes. */
export function lanesOf(marks: { at: number; letters: number }[], wide: number): number[] {
  const lanes = marks.map(() => 0);
  const free: number[] = []; // of each lane, from where on it is
  const order = marks.map((_, number) => number).sort((a, b) => (marks[a]?.at ?? 0) - (marks[b]?.at ?? 0));
  for (const number of order) {
    const mark = marks[number] as { at: number; letters: number };
    const found = free.findIndex((until) => until <= mark.at);
    const lane = found < 0 ? free.length : found;
    lanes[number] = lane;
    free[lane] = mark.at + (mark.letters + 2) * wide;
  }
  return lanes;
}

/** An event as the text has it at this moment; `at_ns` null: a parameter decides, and the server has not told yet. */
export interface Placed {
  number: number;
  at: string;
  at_ns: number | null;
  movable: boolean; // its time is written out, and counts from T0
  link: string;
  words: string;
}

/** The events of a text, which is ahead of the server's answer while a mark is moved; null where it is no YAML. */
export function eventsOf(text: string, told: EventOutline[]): Placed[] | null {
  const events = valueAt(text, ["events"]);
  if (events === undefined && valueAt(text, ["steps"]) === undefined) return null;
  if (events === undefined || events === null) return [];
  if (!Array.isArray(events)) return null;
  return events.map((raw: Record<string, unknown> | null, number) => {
    const at = String(raw?.at ?? "");
    const said = told.find((each) => each.number === number);
    const written = nsOf(at);
    return {
      number,
      at,
      at_ns: written ?? said?.at_ns ?? null,
      movable: written !== null && !raw?.when,
      link: String(raw?.link ?? ""),
      words: wordsOf(raw ?? {}),
    };
  });
}

function wordsOf(raw: Record<string, unknown>): string {
  return changeOf(raw) + (raw.when ? ` when ${shown(raw.when)}` : "");
}

function changeOf(raw: Record<string, unknown>): string {
  if (raw.down === true) return "down";
  if (raw.up === true) return "up";
  const said = Object.entries(raw).filter(([key]) => !["at", "when", "link", "direction"].includes(key));
  const way = raw.direction === "forward" ? " →" : raw.direction === "backward" ? " ←" : "";
  return said.map(([key, value]) => `${key} ${shown(value)}`).join(", ") + way;
}

function shown(value: unknown): string {
  if (value === null || typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([key, inner]) => `${key} ${shown(inner)}`)
    .join(" ");
}
