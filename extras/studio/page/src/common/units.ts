// Quantities as Python's ewan.labs.base.units writes them, but for no time, which is "0s" here. quantities.json has its
// table of units and examples; a test on either side reads it.

import { units } from "./quantities.json";

type Units = Record<string, number>; // the largest first
const DIGITS = 3;
const TIME: Units = units.time;

/** Factors: `value_ns / NS.ms`, `bps / BPS["Mbit/s"]`, `bytes / BYTES.kB`. */
export const { time: NS, rate: BPS, size: BYTES } = units;

function filled(amount: number, known: Units): [string, number] {
  const found = Object.entries(known).find(([, size]) => amount >= size);
  return found ?? (Object.entries(known).at(-1) as [string, number]);
}

/** A measured amount: `941Mbit/s`. */
function about(amount: number, known: Units): string {
  const [unit, size] = filled(Math.abs(Number(amount.toPrecision(DIGITS))), known);
  return `${Number((amount / size).toPrecision(DIGITS))}${unit}`;
}

export const rate = (bps: number): string => about(bps, units.rate);
export const size = (bytes: number): string => about(bytes, units.size);
export const time = (ns: number): string => (ns === 0 ? "0s" : about(ns, TIME));

/** `1.5s` in nanoseconds; null for what is no duration. */
export function nsOf(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)\s?(\p{L}+)$/u.exec(text.trim());
  const size = TIME[found?.[2]?.replace(/[µμ]/, "u") ?? ""];
  return found && size ? Math.round(Number(found[1]) * size) : null;
}

/** Nanoseconds as a description says them, exactly: `350ms`, `12.5s`. */
export function duration(ns: number): string {
  const whole = Math.round(ns);
  if (whole === 0) return "0s";
  const [unit, size] = filled(whole, TIME);
  const digits = `${whole % size}`.padStart(`${size}`.length - 1, "0").replace(/0+$/, "");
  return `${Math.floor(whole / size)}${digits && "."}${digits}${unit}`;
}
