// Where one begins: a template with its settings, a network drawn by hand, a file.

import { useState } from "react";
import { GRAPH, valueAt, withValue } from "../common/edit";
import { Field } from "../common/Field";
import { useStudio } from "../common/studio";
import type { LabDocument } from "./document";

/** The word of the topology in a text: `topology: dumbbell`, `topology: {star: …}`. */
export function kindOf(text: string): string | null {
  const found = valueAt(text, ["topology"]);
  if (typeof found === "string") return found;
  if (found !== null && typeof found === "object") return Object.keys(found)[0] ?? null;
  return null;
}

export function Start({ document }: { document: LabDocument }) {
  const { about, files, fail } = useStudio();
  const [chosen, setChosen] = useState("");
  const kind = kindOf(document.text);
  const settings = kind ? (about?.templates[kind] ?? []) : [];
  const labs = files.filter((file) => file.name.endsWith(".lab.yaml"));
  const begin = (word: string) => {
    if (!document.saved && document.tag !== null && !confirm("What is not saved is lost. Go on?")) return;
    document.fresh("my-lab.lab.yaml", word === "graph" ? GRAPH : `topology: ${word}\n`);
  };
  return (
    <section aria-label="Start">
      <label>
        Template
        <select value={kind ?? ""} onChange={(event) => begin(event.target.value)} data-testid="template">
          {kind === null && <option value="" />}
          {Object.keys(about?.templates ?? {}).map((word) => (
            <option key={word}>{word}</option>
          ))}
        </select>
      </label>
      {settings.map((name) => (
        <Field
          key={`${kind} ${name}`}
          label={name}
          value={String(valueAt(document.text, ["topology", kind ?? "", name]) ?? "")}
          placeholder="default"
          onSet={(value) =>
            document.change(withValue(document.text, ["topology", kind ?? "", name], Number(value)))
          }
        />
      ))}
      <label>
        Open
        <select
          value={chosen}
          onChange={(event) => {
            const file = labs.find((each) => `${each.where}/${each.name}` === event.target.value);
            setChosen("");
            if (file) document.open(file).catch((error: Error) => fail(error.message));
          }}
        >
          <option value="">…</option>
          {labs.map((file) => (
            <option key={`${file.where}/${file.name}`} value={`${file.where}/${file.name}`}>
              {file.where === "library" ? "library: " : ""}
              {file.name.replace(".lab.yaml", "")}
            </option>
          ))}
        </select>
      </label>
    </section>
  );
}
