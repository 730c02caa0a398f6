// A figure of an experiment with other axes: a form, the line that it makes, and the figure beside it. The line and the
// style stand in the address.

import { useEffect, useState } from "react";
import { hashOf, replace, withQuery } from "../common/route";
import { useStudio } from "../common/studio";
import { type Experiment, results, type Words } from "./api";
import { useDrawn } from "./drawn";
import { FigureForm } from "./FigureForm";
import { type Form, formOf, lineOf, usual } from "./line";
import { Picture } from "./Picture";

export function useWords(): Words | null {
  const { fail } = useStudio();
  const [words, setWords] = useState<Words | null>(null);
  useEffect(() => {
    results.words().then(setWords, (error: Error) => fail(error.message));
  }, [fail]);
  return words;
}

interface Props {
  experiment: Experiment;
  line: string;
  style: string;
}

export function FigurePart({ experiment, line, style }: Props) {
  const words = useWords();
  const wanted = line || usual(experiment.asked, experiment.varied, experiment.metrics);
  const figure = useDrawn(experiment.name, wanted, style);
  const go = (next: string, look: string) =>
    replace(
      withQuery(hashOf("experiments", experiment.name, "figure", next), {
        style: look === "page" ? "" : look,
      }),
    );
  const drawn = figure.drawn;
  // Who makes several choices at once does not wait for the drawing of each.
  const [chosen, setChosen] = useState<Form | null>(null);
  const form = chosen !== null && lineOf(chosen) === wanted ? chosen : drawn && formOf(drawn.spec);
  return (
    <div className="plotted">
      <div className="choice">
        <Line key={wanted} line={wanted} onLine={(next) => go(next, style)} />
        {words && form && (
          <FigureForm
            form={form}
            experiment={experiment}
            words={words}
            onForm={(next) => {
              setChosen(next);
              go(lineOf(next), style);
            }}
          />
        )}
        <label>
          size
          <select
            value={style}
            onChange={(event) => go(wanted, event.target.value)}
            data-testid="figure-style"
          >
            {(words?.styles ?? [style]).map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </div>
      <Picture figure={figure} experiment={experiment.name} style={style} />
    </div>
  );
}

/** As it is typed; Enter draws it. */
export function Line({ line, onLine }: { line: string; onLine: (line: string) => void }) {
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
