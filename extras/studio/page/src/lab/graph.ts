// Changes of a network that is drawn by hand: nodes and links come, go and get other names. All else of the text stays.

import { valueAt, withAppended, without, withValue } from "../common/edit";

export const KINDS = { host: ["hosts", "h"], router: ["routers", "r"], switch: ["switches", "s"] } as const;
export type NodeKind = keyof typeof KINDS;
const LISTS = Object.values(KINDS).map(([list]) => list);
const DELAY = "10ms";
export const NAME = /^[a-z]([a-z0-9-]*[a-z0-9])?$/;

const at = (...path: (string | number)[]) => ["topology", "graph", ...path];

export function list(text: string, ...path: (string | number)[]): unknown[] {
  const found = valueAt(text, at(...path));
  return Array.isArray(found) ? found : [];
}

export interface Written {
  between?: unknown[];
  name?: unknown;
}

export function nameOf(link: unknown): string {
  const { name, between } = (link ?? {}) as Written;
  return name === undefined ? (between ?? []).join("-") : String(name);
}

export function indexOfLink(text: string, name: string): number {
  return list(text, "links").findIndex((each) => nameOf(each) === name);
}

/** Whether a node is there still, in a network that is drawn by hand. */
export function hasNode(text: string, name: string): boolean {
  return LISTS.some((each) => list(text, each).map(String).includes(name));
}

/** A text with one more node, linked to another if one is named; and the node's name. */
export function withNode(
  text: string,
  kind: NodeKind,
  taken: Iterable<string>,
  beside: string | null,
): [string, string] {
  const [where, letter] = KINDS[kind];
  const there = new Set([...taken, ...LISTS.flatMap((each) => list(text, each).map(String))]);
  let number = 1;
  while (there.has(`${letter}${number}`)) number += 1;
  const name = `${letter}${number}`;
  const next = withAppended(text, at(where), name);
  return [beside === null ? next : withLink(next, beside, name), name];
}

/** A wide-area link needs a delay, if not all have one of the whole path. */
export function withLink(text: string, a: string, b: string): string {
  const routers = list(text, "routers").map(String);
  const wide = routers.includes(a) && routers.includes(b) && valueAt(text, ["rtt"]) === undefined;
  return withAppended(text, at("links"), { between: [a, b], ...(wide ? { delay: DELAY } : {}) });
}

export function withoutLink(text: string, name: string): string {
  const index = indexOfLink(text, name);
  const left = index < 0 ? text : without(text, at("links", index));
  return without(left, ["links", name]);
}

/** Without a node, and without all that speaks of it. */
export function withoutNode(text: string, name: string): string {
  let left = text;
  const away = (path: string, speaks: (item: unknown) => boolean) => {
    const found = list(left, path);
    for (let index = found.length - 1; index >= 0; index--)
      if (speaks(found[index])) {
        if (path === "links") left = without(left, ["links", nameOf(found[index])]);
        left = without(left, at(path, index));
      }
  };
  away("links", (item) => ((item as Written).between ?? []).map(String).includes(name));
  away("pairs", (item) => Array.isArray(item) && item.map(String).includes(name));
  for (const each of LISTS) away(each, (item) => String(item) === name);
  return without(without(left, ["layout", name]), ["nodes", name]);
}

/** With another name of a node, wherever it stands. */
export function withName(text: string, old: string, name: string): string {
  let next = text;
  for (const each of LISTS) {
    const index = list(text, each).map(String).indexOf(old);
    if (index >= 0) next = withValue(next, at(each, index), name);
  }
  for (const [index, link] of list(text, "links").entries())
    for (const [end, node] of ((link as Written).between ?? []).entries())
      if (String(node) === old) next = withValue(next, at("links", index, "between", end), name);
  for (const [index, pair] of list(text, "pairs").entries())
    for (const [end, node] of (Array.isArray(pair) ? pair : []).entries())
      if (String(node) === old) next = withValue(next, at("pairs", index, end), name);
  for (const key of ["layout", "nodes"]) {
    const value = valueAt(next, [key, old]);
    if (value !== undefined) next = withValue(without(next, [key, old]), [key, name], value);
  }
  return next;
}
