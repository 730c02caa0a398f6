// What is varied, and the points that come of it: each with its number of runs.

import { type Path, valueAt, withValue } from "../common/edit";
import { Field } from "../common/Field";
import { useStudio } from "../common/studio";
import type { ScenarioOutline } from "../server";
import type { ScenarioDocument } from "./document";

const MOST = 100;

interface Props {
  document: ScenarioDocument;
  outline: ScenarioOutline;
  onPoint: (point: number) => void;
}

export function Sweep({ document, outline, onPoint }: Props) {
  const { view } = useStudio();
  const { points, points_in_all: all, seeds, runs, varying } = outline;
  return (
    <fieldset disabled={view} className="sweep">
      <legend>
        Runs: {all} {all === 1 ? "point" : "points"} × {seeds} {seeds === 1 ? "seed" : "seeds"} = {runs}
        {outline.more && " or more"}
      </legend>
      {varying.map((name) => {
        const path: Path = ["sweep", name];
        const values = valueAt(document.text, path);
        if (!Array.isArray(values)) return null;
        return (
          <Field
            key={name}
            label={name}
            value={values.map(String).join(", ")}
            onSet={(text) => document.change(withValue(document.text, path, listed(text)))}
          />
        );
      })}
      {varying.length > 0 && (
        <div className="points">
          <table data-testid="points">
            <thead>
              <tr>
                <th>point</th>
                {varying.map((name) => (
                  <th key={name}>{name}</th>
                ))}
                <th>runs</th>
              </tr>
            </thead>
            <tbody>
              {points.slice(0, MOST).map((point, at) => {
                const number = at + 1;
                return (
                  <tr key={number} className={number === outline.point ? "looked" : ""}>
                    <td>
                      <button
                        type="button"
                        className="text"
                        aria-pressed={number === outline.point}
                        title="show the time line of this point"
                        onClick={() => onPoint(number)}
                        data-testid={`point-${number}`}
                      >
                        {number}
                      </button>
                    </td>
                    {varying.map((name) => (
                      <td key={name}>{String(point[name] ?? "")}</td>
                    ))}
                    <td>{seeds}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {all > Math.min(points.length, MOST) && <p className="quiet">and {all - MOST} more points</p>}
      {outline.checked < all && (
        <p className="quiet">
          {outline.checked} of {all} points have been looked at; all are when it is run.
        </p>
      )}
    </fieldset>
  );
}

/** `1, 2, 5`: numbers are numbers again. */
function listed(text: string): (string | number)[] {
  const parts = text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);
  return parts.map((each) => (/^\d+$/.test(each) ? Number(each) : each));
}
