// Quantities as people write them.

function scaled(value: number, units: string[]): string {
  let at = 0;
  let left = value;
  while (Math.abs(left) >= 999.5 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  return `${Number(left.toPrecision(3))}${units[at]}`;
}

export const rate = (bps: number): string => scaled(bps, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
export const size = (bytes: number): string => scaled(bytes, ["B", "kB", "MB", "GB"]);
export const time = (ns: number): string => (ns === 0 ? "0s" : scaled(ns, ["ns", "us", "ms", "s"]));

const NS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

/** `1.5s` in nanoseconds; null for what is no duration. */
export function nsOf(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|h)$/.exec(text.trim());
  return found ? Math.round(Number(found[1]) * (NS[found[2] ?? ""] ?? 0)) : null;
}

/** Nanoseconds as a description says them, exactly: `350ms`, `12.5s`. */
export function duration(ns: number): string {
  for (const unit of ["s", "ms", "us"]) {
    const size = NS[unit] as number;
    if (ns >= size) return `${Number((ns / size).toFixed(unit === "us" ? 3 : 6))}${unit}`;
  }
  return ns === 0 ? "0s" : `${ns}ns`;
}
