// Runs that are over, as the server gives them (extras/studio/server/areas/replays.py).

import { ask, type Drawing, type DrawnLink, type Heading } from "../api";

export interface RunRow {
  number: number;
  name: string;
  status: string;
}
export interface Runs {
  experiment: string;
  scenario: string;
  runs: RunRow[];
  more: number;
}
export interface RunEvent {
  at_ns: number;
  kind: "set" | "fail" | "mend";
  link: string;
  words: string;
}
export interface RunFlow {
  flow: number;
  part: number;
  name: string;
  kind: string;
  congestion: string | null;
  started_ns: number | null;
  ended_ns: number | null;
  links: [string, Heading][];
}
export interface Replay {
  experiment: string;
  scenario: string;
  run: number;
  name: string;
  clock: string;
  drawing: Drawing;
  changes: { at_ns: number; links: DrawnLink[] }[];
  events: RunEvent[];
  flows: RunFlow[];
  more_flows: number;
  end_ns: number;
  levels_ns: number[];
  bins: number;
}
export interface LinkBins {
  link: string;
  direction: Heading;
  capacity_bps: number[];
  rate_bps: number[];
  queue_bytes: number[];
  dropped_packets: number[];
  lost_packets: number[];
  marked_packets: number[];
}
export interface Piece {
  begin_ns: number;
  bin_ns: number;
  bins: number;
  links: LinkBins[];
}
export interface FlowBins {
  flow: number;
  part: number;
  goodput_bps: (number | null)[];
  cwnd_segments: (number | null)[];
  rtt_ns: (number | null)[];
}
export interface FlowPiece {
  bin_ns: number;
  bins: number;
  flows: FlowBins[];
}

const part = encodeURIComponent;

export const replays = {
  runs: (name: string) => ask<Runs>("GET", `/api/replays/${part(name)}`),
  about: (name: string, run: string) => ask<Replay>("GET", `/api/replays/${part(name)}/${part(run)}`),
  flows: (name: string, run: string) =>
    ask<FlowPiece>("GET", `/api/replays/${part(name)}/${part(run)}/flows`),
  piece: (name: string, run: string, level: number, number: number) =>
    ask<Piece>("GET", `/api/replays/${part(name)}/${part(run)}/links/${level}/${number}`),
};
