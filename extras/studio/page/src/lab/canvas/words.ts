// Which words are shown where: told to the nodes and links that are drawn, each of which looks at its own alone.

import { createContext, useCallback, useContext, useSyncExternalStore } from "react";
import { rate, time } from "../../common/units";
import type { DrawnLink } from "../../server";
import type { Place, Placed } from "./labels";

export class Words {
  private shown: Placed = { nodes: new Map(), links: new Map() };
  private told = new Set<() => void>();

  set(next: Placed): void {
    const before = this.shown.links;
    // A place that is as before stays the same object, so that nobody draws it again.
    for (const [name, place] of next.links) {
      const old = before.get(name);
      if (
        old &&
        old.form === place.form &&
        old.along === place.along &&
        old.dx === place.dx &&
        old.dy === place.dy
      )
        next.links.set(name, old);
    }
    this.shown = next;
    for (const each of this.told) each();
  }
  subscribe = (told: () => void): (() => void) => {
    this.told.add(told);
    return () => this.told.delete(told);
  };
  node = (name: string): boolean => this.shown.nodes.get(name) ?? false;
  link = (name: string): Place | undefined => this.shown.links.get(name);
}

export const WordsShown = createContext(new Words());

export function useNamed(node: string): boolean {
  const words = useContext(WordsShown);
  return useSyncExternalStore(
    words.subscribe,
    useCallback(() => words.node(node), [words, node]),
  );
}

export function usePlace(link: string): Place | undefined {
  const words = useContext(WordsShown);
  return useSyncExternalStore(
    words.subscribe,
    useCallback(() => words.link(link), [words, link]),
  );
}

/** What is said of a link; an access link's name and a delay of nothing say nothing. */
export function linkWords(link: DrawnLink): { name: string; text: string } {
  const way = link.forward;
  const name = link.role === "wan" ? link.name : "";
  if (!way) return { name, text: "" };
  const said = (each: typeof way) =>
    `${rate(each.rate_bps)}${each.delay_ns > 0 || link.role === "wan" ? ` ${time(each.delay_ns)}` : ""}`;
  const back = link.backward;
  if (!back || (back.rate_bps === way.rate_bps && back.delay_ns === way.delay_ns))
    return { name, text: said(way) };
  return { name, text: `${said(way)} → / ← ${said(back)}` };
}
