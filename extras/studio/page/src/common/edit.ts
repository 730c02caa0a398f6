// Changes of a description's text: one value at a time, so that comments, order and white space of all else stay.

import { type Document, isMap, isScalar, isSeq, type Node, parseDocument, type YAMLMap } from "yaml";

export type Path = (string | number)[];

const INDENT = "  ";
const OPEN = "\ue000\ue000"; // as long as what it stands for, so that places stay
const CLOSE = "\ue001";

/** A text of YAML in which `${name}` of a scenario may stand where YAML has no braces. */
function parsed(text: string): Document.Parsed {
  return parseDocument(text.replace(/\$\{([^{}\n]*)\}/g, `${OPEN}$1${CLOSE}`));
}

function plain(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll(OPEN, "${").replaceAll(CLOSE, "}");
  if (Array.isArray(value)) return value.map(plain);
  if (value !== null && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  return value;
}

function written(value: unknown): string {
  if (typeof value === "string") return /^[\w./%+-][\w./%+ -]*$/.test(value) ? value : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(written).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const inside = Object.entries(value).map(([key, each]) => `${key}: ${written(each)}`);
    return `{${inside.join(", ")}}`;
  }
  return String(value);
}

/** The value at a path, as it is written; undefined where there is none. */
export function valueAt(text: string, path: Path): unknown {
  const document = parsed(text);
  if (document.errors.length > 0) return undefined;
  const found = document.getIn(path, false);
  return plain(isMap(found) || isSeq(found) ? found.toJSON() : found);
}

/** The text with another value at a path; groups that are missing are made. The text itself where it is no YAML. */
export function withValue(text: string, path: Path, value: unknown): string {
  const document = parsed(text);
  if (document.errors.length > 0 || path.length === 0) return text;
  const old = document.getIn(path, true) as Node | undefined;
  if (old?.range) {
    const [from, to] = old.range;
    const shown = text.slice(from, to).trimEnd();
    return text.slice(0, from) + (shown === "" ? " " : "") + written(value) + text.slice(from + shown.length);
  }
  for (let depth = path.length - 1; depth >= 0; depth--) {
    const parent = (
      depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true)
    ) as Node | null;
    const rest = path.slice(depth);
    const made = rest.slice(1).reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
    if (parent && isMap(parent) && parent.range) return withPair(text, parent, String(rest[0]), made);
    if (parent && isSeq(parent) && parent.range)
      return withItem(text, parent.range, parent.flow === true, made);
    if (parent && isScalar(parent) && depth > 0)
      return withScalar(text, parent, path.slice(0, depth), rest, value);
  }
  const line = `${path[0]}: ${written(path.slice(1).reduceRight<unknown>((inner, key) => ({ [key]: inner }), value))}\n`;
  return text === "" || text.endsWith("\n") ? text + line : `${text}\n${line}`;
}

/** `topology: dumbbell` has no settings yet: the word becomes a group of one. */
function withScalar(text: string, scalar: Node, at: Path, rest: Path, value: unknown): string {
  const word = isScalar(scalar) ? scalar.value : null;
  if (word === null || word === "") {
    const made = rest.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
    return withValue(text, at, made);
  }
  if (word !== rest[0]) return text;
  return withValue(text, at, {
    [String(word)]: rest.slice(1).reduceRight<unknown>((inner, key) => ({ [key]: inner }), value),
  });
}

function withPair(text: string, map: YAMLMap, key: string, value: unknown): string {
  const [from, to] = map.range as [number, number, number];
  if (map.flow) {
    const closing = text.lastIndexOf("}", to - 1);
    const inside = text.slice(from + 1, closing).trimEnd();
    return `${text.slice(0, from + 1) + inside + (inside.trim() === "" ? "" : ", ")}${key}: ${written(value)}${text.slice(closing)}`;
  }
  const column = from - (text.lastIndexOf("\n", from - 1) + 1);
  const end = endOfLine(text, map);
  const before = text.slice(0, end);
  return `${before}${before.endsWith("\n") || before === "" ? "" : "\n"}${" ".repeat(column)}${key}: ${written(value)}\n${text.slice(end)}`;
}

/** Where the last line of a group ends, its comment included. */
function endOfLine(text: string, map: YAMLMap): number {
  const last = map.items[map.items.length - 1];
  const node = (last?.value ?? last?.key) as Node | null;
  const at = node?.range ? node.range[1] : (map.range as [number, number, number])[1];
  if (at > 0 && text[at - 1] === "\n") return at;
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end + 1;
}

function withItem(text: string, range: [number, number, number], flow: boolean, value: unknown): string {
  const [from, to] = range;
  if (flow) {
    const closing = text.lastIndexOf("]", to - 1);
    const inside = text.slice(from + 1, closing).trimEnd();
    return `${text.slice(0, from + 1) + inside + (inside.trim() === "" ? "" : ", ")}${written(value)}${text.slice(closing)}`;
  }
  const column = from - (text.lastIndexOf("\n", from - 1) + 1);
  const end = text[to - 1] === "\n" ? to : ((at) => (at < 0 ? text.length : at + 1))(text.indexOf("\n", to));
  const before = text.slice(0, end);
  return `${before}${before.endsWith("\n") ? "" : "\n"}${" ".repeat(column)}- ${written(value)}\n${text.slice(end)}`;
}

/** The text with one more item at the end of a list. */
export function withAppended(text: string, path: Path, value: unknown): string {
  const document = parsed(text);
  if (document.errors.length > 0) return text;
  const list = document.getIn(path, true) as Node | undefined;
  if (list && isSeq(list) && list.range) return withItem(text, list.range, list.flow === true, value);
  return withValue(text, path, [value]);
}

/** The text without the value at a path, and without its group where nothing is left in that. */
export function without(text: string, path: Path): string {
  const document = parsed(text);
  if (document.errors.length > 0 || !document.hasIn(path)) return text;
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(parent) && !isSeq(parent)) return text;
  if (parent.items.length === 1 && path.length > 1) return without(text, path.slice(0, -1));
  const places = parent.items.map((item) => placeOf(text, item));
  const at = isSeq(parent)
    ? Number(path.at(-1))
    : parent.items.findIndex((item) => isScalar(item.key) && item.key.value === path.at(-1));
  const [from, to] = places[at] as [number, number];
  const next = places[at + 1];
  if (parent.flow) {
    const before = places[at - 1];
    if (next) return text.slice(0, from) + text.slice(next[0]);
    return text.slice(0, before ? before[1] : from) + text.slice(to);
  }
  const begin = text.lastIndexOf("\n", from - 1) + 1;
  if (isMap(parent) && text.slice(begin, from).trim() !== "" && next)
    return text.slice(0, from) + text.slice(next[0]); // the first key of `- key: …`
  const end = text.indexOf("\n", to);
  return text.slice(0, begin) + (end < 0 ? "" : text.slice(end + 1));
}

/** Where an item of a list or a pair of a group begins and ends. */
function placeOf(text: string, item: unknown): [number, number] {
  const pair = item as { key?: Node; value?: Node | null };
  const first = (pair.key ?? item) as Node;
  const last = pair.key ? (pair.value ?? pair.key) : (item as Node);
  const from = first.range?.[0] ?? 0;
  const until = Math.max(last.range?.[1] ?? from, first.range?.[1] ?? from);
  return [from, from + text.slice(from, until).trimEnd().length];
}

/** The first and the last line of the value at a path, from 1 on; null where there is none. */
export function linesOf(text: string, path: Path): [number, number] | null {
  const document = parsed(text);
  const found = document.errors.length > 0 ? undefined : (document.getIn(path, true) as Node | undefined);
  if (!found?.range) return null;
  const [from, to] = placeOf(text, found);
  const line = (at: number) => text.slice(0, at).split("\n").length;
  return [line(from), line(to)];
}

/** The text with places of nodes, a line each, in the place of those that it had. */
export function withLayout(text: string, places: Map<string, [number, number]>): string {
  if (parsed(text).errors.length > 0) return text;
  const left = without(text, ["layout"]);
  const lines = [...places].map(([node, [x, y]]) => `${INDENT}${written(node)}: [${x}, ${y}]\n`);
  return `${left}${left === "" || left.endsWith("\n") ? "" : "\n"}layout:\n${lines.join("")}`;
}

export const GRAPH = `# A network drawn by hand.
topology:
${INDENT}graph:
${INDENT}${INDENT}hosts: [a, b]
${INDENT}${INDENT}routers: [r1, r2]
${INDENT}${INDENT}links:
${INDENT}${INDENT}${INDENT}- {between: [a, r1]}
${INDENT}${INDENT}${INDENT}- {between: [b, r2]}
${INDENT}${INDENT}${INDENT}- {between: [r1, r2], name: core, delay: 10ms}
${INDENT}${INDENT}pairs:
${INDENT}${INDENT}${INDENT}- [a, b]
wan: {rate: 100Mbit/s, buffer: 1BDP}
`;
