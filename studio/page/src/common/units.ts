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
export const time = (ns: number): string => scaled(ns, ["ns", "us", "ms", "s"]);
