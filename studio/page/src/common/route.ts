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
}

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

export function placeOf(hash: string): Place {
  const [page, ...words] = hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
  return [...PAGES, ...OTHERS].includes(page as PageName)
    ? { page: page as PageName, words }
    : { page: "lab", words: [] };
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

export function useHash(): string {
  return useSyncExternalStore(subscribe, () => location.hash);
}
