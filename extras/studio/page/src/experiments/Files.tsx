// An experiment's results as files: what `ewan export` writes, and the figures of its report.

import { useState } from "react";
import { fetched } from "../api";
import { keep } from "../common/keep";
import { useStudio } from "../common/studio";
import type { Experiment } from "../server";
import { fileOf } from "./api";

const KINDS: { kind: string; what: string; file: string }[] = [
  { kind: "csv", what: "CSV: a line a point, a line a run", file: "DIR" },
  { kind: "parquet", what: "Parquet: each table, of all runs together", file: "DIR" },
  { kind: "latex", what: "Tables for LaTeX: booktabs, siunitx", file: "DIR" },
  { kind: "flent", what: "Files for flent, one a run", file: "DIR" },
  { kind: "reference", what: "A small table with the archive's SHA-256", file: "FILE.csv" },
  { kind: "nxe", what: "The experiment in NXE's XML", file: "FILE.xml" },
  { kind: "ns2", what: "The experiment for ns-2", file: "FILE.tcl" },
  { kind: "ns3", what: "The experiment for ns-3", file: "FILE.cc" },
];

export function Files({ experiment }: { experiment: Experiment }) {
  const { fail, say } = useStudio();
  const [busy, setBusy] = useState("");
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
          {KINDS.map(({ kind, what, file }) => (
            <tr key={kind}>
              <td>{what}</td>
              <td>
                <code>
                  ewan export {experiment.directory} --{kind} {file}
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
