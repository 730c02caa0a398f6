// Changes of a description's text: one value at a time, so that comments, order and white space of all else stay.

import { isMap, isPair, isScalar, isSeq, type Node, parseDocument, type YAMLMap } from "yaml";

export type Path = (string | number)[];

const INDENT = "  ";

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
  const document = parseDocument(text);
  if (document.errors.length > 0) return undefined;
  const found = document.getIn(path, false);
  return isMap(found) || isSeq(found) ? found.toJSON() : found;
}

/** The text with another value at a path; groups that are missing are made. The text itself where it is no YAML. */
export function withValue(text: string, path: Path, value: unknown): string {
  const document = parseDocument(text);
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
  const document = parseDocument(text);
  if (document.errors.length > 0) return text;
  const list = document.getIn(path, true) as Node | undefined;
  if (list && isSeq(list) && list.range) return withItem(text, list.range, list.flow === true, value);
  return withValue(text, path, [value]);
}

/** The text without the value at a path, and without its lines if it had some of its own; all else stays as it was. */
export function without(text: string, path: Path): string {
  const document = parseDocument(text);
  const key = path.at(-1);
  if (document.errors.length > 0 || key === undefined || !document.hasIn(path)) return text;
  const parent = (path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true)) as Node;
  if (!(isMap(parent) || isSeq(parent)) || !parent.range) return text;
  const at = isMap(parent)
    ? parent.items.findIndex((pair) => String(isScalar(pair.key) ? pair.key.value : pair.key) === String(key))
    : Number(key);
  const spans = parent.items.map((item) => {
    if (!isPair(item)) return (item as Node).range as [number, number, number];
    const first = (item.key as Node).range as [number, number, number];
    return [first[0], ((item.value as Node | null)?.range ?? first)[1], 0];
  });
  const [from, until] = spans[at] as [number, number, number];
  if (parent.flow) {
    const [next, before] = [spans[at + 1], spans[at - 1]];
    if (next) return text.slice(0, from) + text.slice(next[0]);
    return text.slice(0, before ? before[1] : from) + text.slice(until);
  }
  if (spans.length === 1 && path.length > 1) {
    const empty = isMap(parent) ? "{}" : "[]";
    const begin = text.lastIndexOf("\n", from); // of the line before: its key stands there
    const one = begin >= 0 && parent.range[0] > begin && text.slice(0, begin).trimEnd().endsWith(":");
    if (one) return `${text.slice(0, begin).trimEnd()} ${empty}${text.slice(lineEnd(text, until) - 1)}`;
  }
  return text.slice(0, text.lastIndexOf("\n", from - 1) + 1) + text.slice(lineEnd(text, until));
}

/** After the end of the line in which `at` is, or of the one before where `at` begins a line. */
function lineEnd(text: string, at: number): number {
  if (at > 0 && text[at - 1] === "\n") return at;
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end + 1;
}

/** The text with places of nodes, a line each, in the place of those that it had. */
export function withLayout(text: string, places: Map<string, [number, number]>): string {
  if (parseDocument(text).errors.length > 0) return text;
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
