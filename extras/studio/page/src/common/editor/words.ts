// Keys that may stand where the cursor is, and what they mean, from the JSON Schema of descriptions.

import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { EditorState } from "@codemirror/state";
import type { Tooltip } from "@codemirror/view";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  allOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  description?: string;
  examples?: unknown[];
  live?: boolean; // false: a setting that does not change while a lab is up
}

/** A setting of a link, as a form offers it. */
export interface Setting {
  name: string;
  example: string;
  live: boolean; // it changes while a lab is up
}

/** The settings of a link that are written as one word. */
export function settingsOf(schema: Schema | null): Setting[] {
  if (!schema) return [];
  return Object.entries(schema.$defs?.DirectionKeys?.properties ?? {}).flatMap(([name, each]) => {
    const shown = resolved(each, schema).flatMap((part) => [...(part.examples ?? []), ...(part.enum ?? [])]);
    const example = String(shown[0] ?? "true");
    return example.startsWith("{") ? [] : [{ name, example, live: each.live !== false }];
  });
}

/** The words that a key of a description takes. */
export function choicesOf(schema: Schema | null, name: string): string[] {
  if (!schema) return [];
  return resolved(schema.properties?.[name], schema).flatMap((part) => (part.enum ?? []).map(String));
}

/** The keys above the line at `at`, by their indentation. */
export function pathAt(text: string, at: number): string[] {
  const lines = text.slice(0, at).split("\n");
  const current = lines.pop() ?? "";
  let indent = current.length - current.trimStart().length;
  const path: string[] = [];
  for (const line of lines.reverse()) {
    const found = /^(\s*)(?:- )?([\w-]+):\s*(?:#.*)?$/.exec(line);
    if (found && (found[1] ?? "").length < indent) {
      path.unshift(found[2] ?? "");
      indent = (found[1] ?? "").length;
    }
    if (indent === 0) break;
  }
  const open = /([\w-]+):\s*\{[^}]*$/.exec(current); // {a: …, b: …} on one line
  if (open) path.push(open[1] ?? "");
  return path;
}

function resolved(schema: Schema | undefined, root: Schema): Schema[] {
  if (!schema) return [];
  if (schema.$ref) return resolved(root.$defs?.[schema.$ref.split("/").pop() ?? ""], root);
  const parts = [...(schema.anyOf ?? []), ...(schema.allOf ?? [])];
  return [schema, ...parts.flatMap((each) => resolved(each, root))];
}

function at(path: string[], root: Schema): Schema[] {
  let here = resolved(root, root);
  for (const name of path) {
    const next = here.flatMap((each) => [each.properties?.[name], each.items]);
    here = next.flatMap((each) => resolved(each, root));
    here = here.flatMap((each) => (each.items && !each.properties ? resolved(each.items, root) : [each]));
  }
  return here;
}

export function completions(context: CompletionContext, schema: Schema | null): CompletionResult | null {
  if (!schema) return null;
  const word = context.matchBefore(/[\w-]*/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const text = context.state.doc.toString();
  const before = text.slice(text.lastIndexOf("\n", word.from - 1) + 1, word.from);
  const valued = /([\w-]+):\s*$/.exec(before);
  const path = pathAt(text, word.from);
  if (valued) {
    const values = at([...path, valued[1] ?? ""], schema).flatMap((each) => [
      ...(each.enum ?? []),
      ...(each.const === undefined ? [] : [each.const]),
      ...Object.keys(each.properties ?? {}),
    ]);
    return { from: word.from, options: [...new Set(values)].map((label) => ({ label: String(label) })) };
  }
  const options = at(path, schema).flatMap((each) =>
    Object.entries(each.properties ?? {}).map(([label, of]) => ({
      label,
      detail: of.description ?? "",
      apply: `${label}: `,
    })),
  );
  return { from: word.from, options };
}

export function meaning(state: EditorState, at_: number, schema: Schema | null): Tooltip | null {
  if (!schema) return null;
  const word = state.wordAt(at_);
  if (!word) return null;
  const text = state.doc.toString();
  const name = text.slice(word.from, word.to);
  const found = at(pathAt(text, word.from), schema).find((each) => each.properties?.[name]);
  const said = found?.properties?.[name]?.description;
  if (!said) return null;
  return {
    pos: word.from,
    create: () => {
      const dom = document.createElement("div");
      dom.textContent = said;
      return { dom };
    },
  };
}
