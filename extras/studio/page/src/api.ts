// What the server can be asked. Paths, bodies and answers are typed by server.ts, which is generated (types.sh).

import { keyOfPage, withKey } from "./key";
import type { Begin, DrawnNode, FileName, Moment, paths, Set as SetLink, Up } from "./server";

export type Kind = DrawnNode["kind"];
export type Heading = Moment["direction"];

/** Whether a lab is up as a whole, also while it does not answer. */
export const isRunning = (lab: Up): boolean => lab.state === "complete" || lab.state === "silent";

/** One line for the person. */
export class RefusedError extends Error {}

type Method = "get" | "post" | "put";
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never;
}[keyof paths];
type Json<T> = T extends { content: { "application/json": infer Value } } ? Value : never;
type Answer<T> = T extends { responses: { 200: infer Found } } ? Json<Found> : never;
type Given<T> = (T extends { parameters: { path: infer Words } } ? { words: Words } : unknown) &
  (T extends { requestBody: infer Body } ? { body: Json<Body> } : unknown);

/** `words`: of the path, by name. RefusedError with one line for the person. */
export async function ask<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  ...given: unknown extends Given<paths[P][M]> ? [] : [Given<paths[P][M]>]
): Promise<Answer<paths[P][M]>> {
  const { words, body } = (given[0] ?? {}) as { words?: Record<string, string>; body?: unknown };
  const address = path.replace(/{(\w+)}/g, (_, name: string) => part(words?.[name] ?? ""));
  const answer = await fetch(address, {
    method: method.toUpperCase(),
    ...(body === undefined
      ? { headers: withKey() }
      : { body: JSON.stringify(body), headers: withKey({ "content-type": "application/json" }) }),
  }).catch(() => {
    throw new RefusedError("the server does not answer: is ewan studio still running?");
  });
  if (answer.ok) return (await answer.json()) as Answer<paths[P][M]>;
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
  about: () => ask("get", "/api/studio"),
  schema: () => ask("get", "/api/schema"),
  describe: (name: string, text: string, virtual = false) =>
    ask("post", "/api/describe", { body: { name, text, virtual } }),
  files: () => ask("get", "/api/files"),
  read: ({ where, name }: FileName) => ask("get", "/api/files/{where}/{name}", { words: { where, name } }),
  write: (name: string, text: string, made_of: string | null) =>
    ask("put", "/api/files/here/{name}", { words: { name }, body: { text, made_of } }),
  jobs: () => ask("get", "/api/jobs"),
  job: (job: string) => ask("get", "/api/jobs/{job}", { words: { job } }),
  begin: (kind: Begin["kind"], name: string, more: Omit<Begin, "kind" | "name"> = {}) =>
    ask("post", "/api/jobs", { body: { kind, name, ...more } }),
  stop: (job: string) => ask("post", "/api/jobs/{job}/stop", { words: { job } }),
  live: () => ask("get", "/api/live"),
  verification: (lab: string) => ask("get", "/api/labs/{lab}/verification", { words: { lab } }),
  set: (lab: string, link: string, body: SetLink) =>
    ask("post", "/api/live/{lab}/links/{link}/set", { words: { lab, link }, body }),
  done: (lab: string) => ask("get", "/api/live/{lab}/done", { words: { lab } }),
  recorded: (lab: string, text: string) =>
    ask("post", "/api/live/{lab}/recorded", { words: { lab }, body: { text } }),
  later: (lab: string, link: string, up: boolean, at: string) =>
    ask("post", "/api/jobs/later", { body: { lab, link, up, at } }),
  carrier: (lab: string, link: string, up: boolean) =>
    ask("post", "/api/live/{lab}/links/{link}/carrier", { words: { lab, link }, body: { up } }),
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
