// The text of a description or a scenario, with the line that is wrong marked, and words that may stand there.

import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import {
  defaultKeymap,
  history,
  historyKeymap,
  indentWithTab,
  isolateHistory,
  redo,
  undo,
} from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { indentUnit } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import type { Refusal } from "../../server";
import { look } from "./look";
import { completions, meaning, type Schema } from "./words";

interface Props {
  text: string;
  refusal: Refusal | null;
  schema: Schema | null;
  onChange: (text: string) => void;
  label?: string;
  testId?: string;
  line?: number | null; // that is looked at; the cursor goes there
  onLine?: (line: number) => void; // where the person has put the cursor
}

export function Editor(props: Props) {
  const {
    text,
    refusal,
    schema,
    onChange,
    label = "description",
    testId = "text",
    line = null,
    onLine,
  } = props;
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const told = useRef(onChange);
  const known = useRef(schema);
  const named = useRef({ "aria-label": label, "data-testid": testId });
  const lined = useRef(onLine);
  told.current = onChange;
  lined.current = onLine;
  known.current = schema;

  useEffect(() => {
    if (!place.current) return;
    view.current = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: "",
        extensions: [
          lineNumbers(),
          history(),
          yaml(),
          indentUnit.of("  "),
          closeBrackets(),
          look,
          autocompletion({ override: [(context) => completions(context, known.current)] }),
          hoverTooltip((editor, at) => meaning(editor.state, at, known.current)),
          lintGutter(),
          keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
          EditorView.contentAttributes.of(named.current),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !update.transactions.some((each) => each.isUserEvent("outside")))
              told.current(update.state.doc.toString());
            if (update.selectionSet && update.view.hasFocus)
              lined.current?.(update.state.doc.lineAt(update.state.selection.main.head).number);
          }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const old = editor.state.doc.toString();
    if (old === text) return;
    // Only what differs is replaced, so that the cursor stays where it was.
    let from = 0;
    while (from < old.length && from < text.length && old[from] === text[from]) from++;
    let same = 0;
    while (same < old.length - from && same < text.length - from && old.at(-1 - same) === text.at(-1 - same))
      same++;
    editor.dispatch({
      changes: { from, to: old.length - same, insert: text.slice(from, text.length - same) },
      userEvent: "outside",
      annotations: isolateHistory.of("full"), // undone by itself
    });
  }, [text]);

  useEffect(() => {
    // What the drawing has changed is undone at the drawing too.
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (!view.current || !(event.ctrlKey || event.metaKey) || view.current.dom.offsetParent === null)
        return;
      if (target.closest(".editor, .terminal, input, textarea, [contenteditable]")) return;
      const key = event.key.toLowerCase();
      if (key === "z" && !event.shiftKey) undo(view.current);
      else if (key === "y" || key === "z") redo(view.current);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const found: Diagnostic[] = [];
    if (refusal) {
      const line = editor.state.doc.line(Math.min(refusal.line, editor.state.doc.lines));
      found.push({ from: line.from, to: line.to, severity: "error", message: refusal.message });
    }
    editor.dispatch(setDiagnostics(editor.state, found));
  }, [refusal]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || line === null || editor.hasFocus || line > editor.state.doc.lines) return;
    const at = editor.state.doc.line(line).from;
    editor.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
  }, [line]);

  return <div className="editor" ref={place} />;
}
