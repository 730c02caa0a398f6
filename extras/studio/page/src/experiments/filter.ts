// Which experiments of a list are wanted, and in which order. It stands in the address.

import type { ExperimentRow } from "../server";
import { nameOf } from "./api";

export const SORTS = { began: "begun", name: "name", status: "status", runs: "runs" } as const;
export type Sort = keyof typeof SORTS;

export interface Wanted {
  text: string;
  tag: string;
  status: string;
  clock: string;
  sort: Sort;
  up: boolean; // the least first
}

export function wantedOf(query: URLSearchParams): Wanted {
  const sort = query.get("sort") ?? "";
  const up = sort.startsWith("-");
  const by = sort.replace(/^-/, "");
  return {
    text: query.get("text") ?? "",
    tag: query.get("tag") ?? "",
    status: query.get("status") ?? "",
    clock: query.get("clock") ?? "",
    sort: by in SORTS ? (by as Sort) : "began",
    up,
  };
}

/** For the address; what is usual is left out. */
export function queryOf({ sort, up, ...others }: Wanted): Record<string, string> {
  const order = `${up ? "-" : ""}${sort}`;
  return { ...others, sort: order === "began" ? "" : order };
}

export const titleOf = (row: ExperimentRow): string => row.name || row.scenario || nameOf(row);

/** Each word of the text must be somewhere in a row. */
export function filtered(rows: ExperimentRow[], wanted: Wanted): ExperimentRow[] {
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) => {
    const all = [row.directory, row.scenario, row.name, row.note, row.result, ...row.tags]
      .join("\n")
      .toLowerCase();
    return (
      (wanted.tag === "" || row.tags.includes(wanted.tag)) &&
      (wanted.status === "" || row.status === wanted.status) &&
      (wanted.clock === "" || row.clock === wanted.clock) &&
      words.every((word) => all.includes(word))
    );
  });
  const sorted = found.sort((one, two) => compared(one, two, wanted.sort));
  return wanted.up ? sorted.reverse() : sorted;
}

/** The newest first, the most runs first, words from A on. */
function compared(one: ExperimentRow, two: ExperimentRow, sort: Sort): number {
  const newest = two.began.localeCompare(one.began) || nameOf(two).localeCompare(nameOf(one));
  if (sort === "name") return titleOf(one).localeCompare(titleOf(two)) || newest;
  if (sort === "status") return one.status.localeCompare(two.status) || newest;
  if (sort === "runs") return runsOf(two) - runsOf(one) || newest;
  return newest;
}

const runsOf = (row: ExperimentRow): number => Number(row.runs.split("/")[1] ?? 0);

export function tagsOf(rows: ExperimentRow[]): string[] {
  return [...new Set(rows.flatMap((row) => row.tags))].sort();
}
