// A figure as a form has it, and the line that `ewan results plot` takes of it (docs/how-to/experiments/figures.md). The server reads lines:
// what it found comes back as keys, of which the form is filled.

import { duration } from "../common/units";
import type { FigureSpec } from "../server";

export type FigureKind = FigureSpec["kind"];

export const KINDS: Record<FigureKind, string> = {
  metric: "a metric by a parameter",
  map: "a metric by two parameters (heat map)",
  phase: "a metric against a metric",
  time: "a series over time",
  "flow chart": "shares over time",
  cdf: "distribution (CDF)",
  ccdf: "distribution (complementary CDF)",
  box: "boxes by a parameter",
  timeline: "timeline of steps and events",
};

export interface Form {
  kind: FigureKind;
  what: string;
  of: string; // whose: a step, a role, a link
  against: string;
  by: string;
  by2: string; // of a heat map
  lines: string; // "": what else varies; "none", "a and b"
  facets: string;
  scale: string;
  values: string;
  points: string;
  relative: string; // relative to; of a heat map: harm against
  where: string; // P=VALUE and P=VALUE
  run: string;
  flows: string;
  from: string;
  to: string;
  band: boolean;
  bars: boolean;
  title: string;
}

const GROUPED: FigureKind[] = ["metric", "phase", "time", "cdf", "ccdf", "box"];
const TIMED: FigureKind[] = ["time", "flow chart", "timeline"];

/** Which clauses a kind of figure has; others are left out of the line. */
export const CLAUSES: Record<string, FigureKind[]> = {
  of: ["metric", "map", "phase", "time", "flow chart", "cdf", "ccdf", "box"],
  against: ["phase"],
  by: ["metric", "map", "box"],
  by2: ["map"],
  lines: GROUPED,
  facets: [...GROUPED, "map", "flow chart"],
  scale: ["metric", "map", "box"],
  values: ["metric"],
  points: ["metric"],
  relative: ["metric", "map"],
  bars: ["metric"],
  where: Object.keys(KINDS) as FigureKind[],
  run: [...TIMED, "cdf", "ccdf"],
  flows: ["time", "flow chart"],
  from: TIMED,
  to: TIMED,
  band: ["time"],
  title: Object.keys(KINDS) as FigureKind[],
};

export const has = (form: Form, clause: string): boolean => CLAUSES[clause]?.includes(form.kind) ?? false;

/** The vocabulary that its quantity is of; null: it has none. */
export function vocabulary(kind: FigureKind): "metrics" | "series" | "samples" | null {
  if (kind === "metric" || kind === "map" || kind === "phase") return "metrics";
  if (kind === "time") return "series";
  return kind === "flow chart" || kind === "timeline" ? null : "samples";
}

/** The clause that says what others are held against. */
export const heldOf = (kind: FigureKind) => (kind === "map" ? "harm against" : "relative to");

export function lineOf(form: Form): string {
  const said = (clause: string, value: string) => (value && has(form, clause) ? [`${clause} ${value}`] : []);
  return [
    head(form),
    ...said("lines", form.lines),
    ...said("facets", form.facets),
    ...said("scale", form.scale),
    ...(form.bars ? [] : said("values", form.values)),
    ...(form.bars && has(form, "bars")
      ? ["bars"]
      : said("points", form.points === "mean" ? "" : form.points)),
    ...(form.relative && has(form, "relative") ? [`${heldOf(form.kind)} ${form.relative}`] : []),
    ...said("where", form.where),
    ...said("run", form.run),
    ...said("flows", form.flows),
    ...said("from", form.from),
    ...said("to", form.to),
    ...(form.band && has(form, "band") ? ["band"] : []),
    ...said("title", form.title),
  ].join(", ");
}

function head(form: Form): string {
  const whose = form.of && has(form, "of") ? ` of ${form.of}` : "";
  switch (form.kind) {
    case "metric":
      return `${form.what}${whose} by ${form.by}`;
    case "map":
      return `${form.what}${whose} by ${form.by} and ${form.by2}`;
    case "phase":
      return `${form.what}${whose} against ${form.against}`;
    case "time":
      return `${form.what}${whose} over time`;
    case "flow chart":
      return `shares${whose} over time`;
    case "box":
      return `box of ${form.what}${whose} by ${form.by}`;
    case "timeline":
      return "timeline";
    default:
      return `${form.kind} of ${form.what}${whose}`;
  }
}

const moment = (ns: number | null): string => (ns === null ? "" : duration(ns));

/** Of what the server read; a metric's `of WHO` is a part of its words there. */
export function formOf(spec: FigureSpec): Form {
  const metrics = vocabulary(spec.kind) === "metrics";
  const [what = "", of = ""] = metrics ? spec.what.split(/ of (.*)/s) : [spec.what, spec.of];
  return {
    kind: spec.kind,
    what,
    of,
    against: spec.against,
    by: spec.by[0] ?? "",
    by2: spec.by[1] ?? "",
    lines: spec.lines === null ? "" : spec.lines.join(" and ") || "none",
    facets: spec.facets.join(" and "),
    scale: spec.scale ?? "",
    values: spec.values ?? "",
    points: spec.points,
    relative: `${spec.relative_to ?? ""}${spec.relative_of ? ` of ${spec.relative_of}` : ""}`,
    where: spec.where.map(([name, value]) => `${name}=${value}`).join(" and "),
    run: spec.run === null ? "" : String(spec.run),
    flows: spec.flows ?? "",
    from: moment(spec.from_ns),
    to: moment(spec.to_ns),
    band: spec.band,
    bars: spec.bars,
    title: spec.title,
  };
}

/** A figure of another kind: what there is of parameters and quantities is kept where it fits. */
export function changed(
  form: Form,
  kind: FigureKind,
  parameters: string[],
  known: Record<string, string[]>,
): Form {
  const words = vocabulary(kind);
  const names = words === null ? [] : (known[words] ?? []);
  const first = (avoid: string) => parameters.find((each) => each !== avoid) ?? "";
  const by = form.by || first("");
  return {
    ...form,
    kind,
    what: names.includes(form.what) ? form.what : (names[0] ?? ""),
    of: words === vocabulary(form.kind) ? form.of : "",
    against: form.against || (known.metrics?.find((each) => each !== form.what) ?? ""),
    by,
    by2: form.by2 || first(by),
    lines: kind === form.kind ? form.lines : "",
    facets: kind === form.kind ? form.facets : "",
    relative: kind === form.kind ? form.relative : "",
  };
}

/** What is drawn where nobody has said what. */
export function usual(asked: string[], varied: string[], metrics: string[]): string {
  const [first] = asked;
  const along = varied[0];
  if (first) return first;
  return along && metrics.length > 0
    ? `${metrics.includes("aggregate goodput") ? "goodput" : metrics[0]} by ${along}`
    : "goodput over time";
}

/** The same figure of one experiment alone: the parameter that says whose a run is does not group it. */
export function ofOneAlone(line: string): string {
  return line
    .replace(/, (lines|facets) experiment and /g, ", $1 ")
    .replace(/, (lines|facets) ([^,]+) and experiment(?=,|$)/g, ", $1 $2")
    .replace(/, (lines|facets) experiment(?=,|$)/g, "");
}
