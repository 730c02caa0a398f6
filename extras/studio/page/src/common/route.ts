// Which page is shown: the part of the address after #, so that a page has a link that another person can open.
// `#/lab/my.lab.yaml`, `#/scenario/brief.scenario.yaml`, `#/experiments/20260101T000000Z-brief`,
// `#/replay/20260101T000000Z-brief/1`.

import { useSyncExternalStore } from "react";

export const PAGES = ["lab", "scenario", "experiments"] as const; // of the head
const OTHERS = ["replay"] as const;
export type PageName = (typeof PAGES)[number] | (typeof OTHERS)[number];

export interface Place {
  page: PageName;
  words: string[]; // what follows
  query: URLSearchParams; // what is behind a question mark: how it is shown
}

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

export function placeOf(hash: string): Place {
  const [path = "", asked = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page, ...words] = path.split("/").filter(Boolean).map(decoded);
  const query = new URLSearchParams(asked);
  return [...PAGES, ...OTHERS].includes(page as PageName)
    ? { page: page as PageName, words, query }
    : { page: "lab", words: [], query };
}

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

/** The part of an address that shows a page. */
export function hashOf(page: PageName, ...words: string[]): string {
  return `#/${[page, ...words].map(encodeURIComponent).join("/")}`;
}

/** The same with what is behind a question mark; what is empty is left out. */
export function withQuery(hash: string, asked: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== "")).toString();
  return query === "" ? hash : `${hash}?${query}`;
}

/** Goes there without a step for the browser's way back. */
export function replace(hash: string): void {
  location.replace(hash);
}

export function useHash(): string {
  return useSyncExternalStore(subscribe, () => location.hash);
}
