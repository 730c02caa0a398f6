// How the editor looks: by the style sheet's variables, in the light and in the dark.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const ground = { backgroundColor: "var(--ground)", color: "var(--ink)" };
const CHOSEN = "color-mix(in oklab, var(--focus) 30%, var(--ground))";

export const look = [
  EditorView.theme({
    "&": ground,
    ".cm-content": { caretColor: "var(--ink)" },
    ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
    ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--quiet)", border: "none" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
      backgroundColor: CHOSEN,
    },
    ".cm-tooltip": { ...ground, border: "1px solid var(--line)", padding: "2px 6px", maxWidth: "40em" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: CHOSEN, color: "var(--ink)" },
    ".cm-completionDetail": { color: "var(--quiet)" },
    "&.cm-focused .cm-matchingBracket": { backgroundColor: CHOSEN },
    ".cm-lintRange-error": { textDecoration: "underline wavy var(--wrong)", backgroundImage: "none" },
    ".cm-diagnostic": { color: "var(--ink)" },
  }),
  syntaxHighlighting(
    HighlightStyle.define([
      { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--focus)" },
      { tag: [tags.string, tags.content, tags.literal, tags.number], color: "var(--ink)" },
      { tag: [tags.comment, tags.lineComment], color: "var(--quiet)", fontStyle: "italic" },
      { tag: [tags.keyword, tags.typeName, tags.labelName], color: "var(--wan)" },
      { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--quiet)" },
    ]),
  ),
];
