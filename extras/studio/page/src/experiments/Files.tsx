// An experiment's results as files: what `ewan results export` writes, and the figures of its report.

import { useEffect, useState } from "react";
import { fetched } from "../api";
import { keep } from "../common/keep";
import { useStudio } from "../common/studio";
import type { Experiment, ExportKind } from "../server";
import { fileOf, results } from "./api";

export function Files({ experiment }: { experiment: Experiment }) {
  const { fail, say } = useStudio();
  const [busy, setBusy] = useState("");
  const [kinds, setKinds] = useState<ExportKind[]>([]);
  useEffect(() => {
    results.exports().then(setKinds, (error: Error) => fail(error.message));
  }, [fail]);
  const get = (kind: string) => {
    setBusy(kind);
    fetched(fileOf(experiment.name, `export/${kind}`))
      .then(
        ({ name, content }) => {
          keep(name, content);
          say(`${name} is downloaded`);
        },
        (error: Error) => fail(error.message),
      )
      .finally(() => setBusy(""));
  };
  return (
    <>
      <table>
        <thead>
          <tr>
            <th>what</th>
            <th>the same at a terminal</th>
            <th>
              <span className="hidden">get it</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {kinds.map(({ kind, what, into }) => (
            <tr key={kind}>
              <td>{what}</td>
              <td>
                <code>
                  ewan results export {experiment.directory} --{kind} {into}
                </code>
              </td>
              <td>
                <button
                  type="button"
                  disabled={busy !== ""}
                  onClick={() => get(kind)}
                  aria-label={`download ${kind}`}
                  data-testid={`export-${kind}`}
                >
                  {busy === kind ? "…" : "Download"}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {experiment.figures.length > 0 && <h3>Figures of the report</h3>}
      <ul className="certificates">
        {experiment.figures.map((name) => (
          <li key={name}>
            {name}{" "}
            <a href={fileOf(experiment.name, `figures/${name}.svg`)} download>
              SVG
            </a>{" "}
            <a href={fileOf(experiment.name, `figures/${name}.csv`)} download>
              CSV
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}
