// How a figure is chosen: its line, and the form of what the server read in it.

import { type ReactNode, useEffect, useState } from "react";
import { useStudio } from "../common/studio";
import type { DrawnFigure, Experiment, Vocabulary } from "../server";
import { results } from "./api";
import { FigureForm } from "./FigureForm";
import { type Form, formOf, lineOf } from "./line";

interface Props {
  line: string;
  drawn: DrawnFigure | null; // the last one that could be drawn
  experiment: Pick<Experiment, "varied" | "values" | "metrics">;
  onLine: (line: string) => void;
  children?: (words: Vocabulary) => ReactNode;
}

export function Choices({ line, drawn, experiment, onLine, children }: Props) {
  const words = useWords();
  // Who makes several choices at once does not wait for the drawing of each.
  const [chosen, setChosen] = useState<Form | null>(null);
  const form = chosen !== null && lineOf(chosen) === line ? chosen : drawn && formOf(drawn.spec);
  return (
    <div className="choice">
      <Line key={line} line={line} onLine={onLine} />
      {words && form && (
        <FigureForm
          form={form}
          experiment={experiment}
          words={words}
          onForm={(next) => {
            setChosen(next);
            onLine(lineOf(next));
          }}
        />
      )}
      {words && children?.(words)}
    </div>
  );
}

function useWords(): Vocabulary | null {
  const { fail } = useStudio();
  const [words, setWords] = useState<Vocabulary | null>(null);
  useEffect(() => {
    results.words().then(setWords, (error: Error) => fail(error.message));
  }, [fail]);
  return words;
}

/** As it is typed; Enter draws it. */
function Line({ line, onLine }: { line: string; onLine: (line: string) => void }) {
  const [typed, setTyped] = useState(line);
  return (
    <label className="line">
      figure
      <textarea
        rows={3}
        value={typed}
        spellCheck={false}
        onChange={(event) => setTyped(event.target.value.replace(/\n/g, " "))}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          onLine(typed.trim());
        }}
        onBlur={() => typed.trim() !== line && onLine(typed.trim())}
        data-testid="figure-line"
      />
    </label>
  );
}
