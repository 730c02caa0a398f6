// What the server can be asked (extras/studio/server/api.py), and the shapes of its answers.

import { keyOfPage, withKey } from "./key";

export type Kind = "host" | "router" | "switch";
export type Heading = "forward" | "backward";

export interface DrawnNode {
  name: string;
  kind: Kind;
  x: number;
  y: number;
}
export interface Way {
  rate_bps: number;
  delay_ns: number;
  limit_bytes: number | null;
  words: string[];
}
export interface DrawnLink {
  name: string;
  a: string;
  b: string;
  role: "wan" | "access" | "plain";
  forward: Way | null;
  backward: Way | null;
  bottleneck_of: number;
}
export interface DrawnPair {
  source: string;
  sink: string;
  rtt_ns: number;
  bottleneck: string;
  bottleneck_bps: number;
  bdp_bytes: number;
  links: string[];
}
export interface Drawing {
  lab: string;
  topology: string;
  routing: string;
  plan_sha256: string;
  nodes: DrawnNode[];
  links: DrawnLink[];
  pairs: DrawnPair[];
}
export interface Refusal {
  line: number;
  message: string;
}
export interface Described {
  drawing: Drawing | null;
  refusal: Refusal | null;
}
export interface About {
  view: boolean;
  lab: string | null;
  templates: Record<string, string[]>;
}
export interface Named {
  name: string;
  where: "here" | "library";
}
export interface FileText extends Named {
  text: string;
  tag: string;
}
export interface Job {
  id: string;
  words: string[];
  started: string;
  state: "waiting" | "running" | "ended" | "lost";
  status: number | null;
  out: string;
  err: string;
  ended: number | null; // UNIX time in s
}
export interface Up {
  lab: string;
  runtime: string;
  state: string; // "complete", "silent" where it does not answer now, else it is there in part
  links: DrawnLink[]; // as they are now
  down: string[]; // of them those that were taken down
}
/** Whether a lab is up as a whole, also while it does not answer. */
export const isRunning = (lab: Up): boolean => lab.state === "complete" || lab.state === "silent";

export interface Moment {
  link: string;
  direction: Heading;
  rate_bps: number;
  queue_bytes: number;
  dropped_packets: number;
  marked_packets?: number; // by ECN, where that is told
  lateness_ns: number;
}

export interface Done {
  due: number; // UNIX time in s
  link: string;
  words: string;
}

export interface Verification {
  plan_sha256: string;
  whole: boolean; // else the lab is still measured, or nobody measured it to the end
  passed: boolean;
  clock: "live" | "virtual";
  time: string; // empty in the virtual clock
  directory: string;
  words: string;
  advice: string[];
  columns: string[];
  rows: string[][]; // the last cell is the number of a note, from 1, or empty
  notes: string[];
}

/** One line for the person. */
export class RefusedError extends Error {}

export async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(path, {
    method,
    ...(body === undefined
      ? { headers: withKey() }
      : { body: JSON.stringify(body), headers: withKey({ "content-type": "application/json" }) }),
  }).catch(() => {
    throw new RefusedError("the server does not answer: is ewan studio still running?");
  });
  if (answer.ok) return (await answer.json()) as T;
  const text = await answer.text();
  let why = text.trim();
  try {
    why = (JSON.parse(text) as { error: string }).error;
  } catch {
    // the guard answers in plain text
  }
  throw new RefusedError(why);
}

export const part = encodeURIComponent;

export const api = {
  about: () => ask<About>("GET", "/api/studio"),
  schema: () => ask<unknown>("GET", "/api/schema"),
  describe: (name: string, text: string, virtual = false) =>
    ask<Described>("POST", "/api/describe", { name, text, virtual }),
  files: () => ask<Named[]>("GET", "/api/files"),
  read: (file: Named) => ask<FileText>("GET", `/api/files/${file.where}/${part(file.name)}`),
  write: (name: string, text: string, made_of: string | null) =>
    ask<FileText>("PUT", `/api/files/here/${part(name)}`, { text, made_of }),
  jobs: () => ask<Job[]>("GET", "/api/jobs"),
  job: (id: string) => ask<Job>("GET", `/api/jobs/${part(id)}`),
  begin: (kind: string, name: string, more: { runtime?: string; where?: string } = {}) =>
    ask<Job>("POST", "/api/jobs", { kind, name, ...more }),
  stop: (id: string) => ask<Job>("POST", `/api/jobs/${part(id)}/stop`),
  live: () => ask<Up[]>("GET", "/api/live"),
  verification: (lab: string) => ask<Verification | null>("GET", `/api/labs/${part(lab)}/verification`),
  set: (lab: string, link: string, words: Record<string, string>, direction: Heading | "both") =>
    ask<unknown>("POST", `/api/live/${part(lab)}/links/${part(link)}/set`, { words, direction }),
  done: (lab: string) => ask<Done[]>("GET", `/api/live/${part(lab)}/done`),
  recorded: (lab: string, text: string) =>
    ask<{ text: string }>("POST", `/api/live/${part(lab)}/recorded`, { text }),
  later: (lab: string, link: string, up: boolean, at: string) =>
    ask<Job>("POST", "/api/jobs/later", { lab, link, up, at }),
  carrier: (lab: string, link: string, up: boolean) =>
    ask<{ words: string }>("POST", `/api/live/${part(lab)}/links/${part(link)}/carrier`, { up }),
};

/** Packets as pcapng; place: `left1`, `core:forward`. */
export async function captured(lab: string, place: string, filter: string, longest: string): Promise<Blob> {
  const answer = await fetch(`/api/live/${part(lab)}/capture`, {
    method: "POST",
    body: JSON.stringify({ place, filter, longest }),
    headers: withKey({ "content-type": "application/json" }),
  });
  if (!answer.ok) throw new RefusedError(((await answer.json()) as { error: string }).error);
  return answer.blob();
}

/** A file of this server as the browser keeps it; RefusedError. */
export async function fetched(path: string): Promise<{ name: string; content: Blob }> {
  const answer = await fetch(path, { headers: withKey() }).catch(() => {
    throw new RefusedError("the server does not answer: is ewan studio still running?");
  });
  if (!answer.ok) throw new RefusedError(((await answer.json()) as { error: string }).error);
  const told = /filename="?([^";]+)"?/.exec(answer.headers.get("content-disposition") ?? "");
  return { name: told?.[1] ?? path.split("/").pop() ?? "file", content: await answer.blob() };
}

/** A WebSocket of this server. */
export function socket(path: string): WebSocket {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const key = new URLSearchParams({ key: keyOfPage() });
  return new WebSocket(`${scheme}://${location.host}${path}${path.includes("?") ? "&" : "?"}${key}`);
}
