// Scenarios that can be run, and experiments with their reports.

import { useState } from "react";
import { api, type Experiment, type Job, type Named } from "../api";

interface Props {
  files: Named[];
  experiments: Experiment[];
  jobs: Job[];
  view: boolean;
  now: () => void;
  fail: (why: string) => void;
}

export function Results({ files, experiments, jobs, view, now, fail }: Props) {
  const [chosen, setChosen] = useState("");
  const [runtime, setRuntime] = useState("virtual");
  const scenarios = files.filter((file) => file.name.endsWith(".scenario.yaml"));
  const busy = jobs.some((job) => job.state === "running");
  const run = () => {
    const file = scenarios.find((each) => `${each.where}/${each.name}` === chosen);
    if (file)
      api
        .begin("run", file.name, { where: file.where, runtime })
        .then(now, (error: Error) => fail(error.message));
  };
  return (
    <section aria-label="Experiments">
      <fieldset disabled={view}>
        <legend>Run a scenario</legend>
        <label>
          Scenario
          <select value={chosen} onChange={(event) => setChosen(event.target.value)} data-testid="scenario">
            <option value="">…</option>
            {scenarios.map((file) => (
              <option key={`${file.where}/${file.name}`} value={`${file.where}/${file.name}`}>
                {file.where === "library" ? "library: " : ""}
                {file.name.replace(".scenario.yaml", "")}
              </option>
            ))}
          </select>
        </label>
        <label>
          Clock
          <select value={runtime} onChange={(event) => setRuntime(event.target.value)}>
            <option value="virtual">virtual</option>
            <option value="auto">live</option>
          </select>
        </label>
        <button type="button" disabled={chosen === "" || busy} onClick={run} data-testid="run">
          Run
        </button>
      </fieldset>
      <table>
        <thead>
          <tr>
            <th>experiment</th>
            <th>runs</th>
            <th>status</th>
            <th>result</th>
          </tr>
        </thead>
        <tbody>
          {experiments.map((each) => {
            const place = each.directory.split("/").pop() ?? "";
            return (
              <tr key={place}>
                <td>
                  <a
                    href={`/results/${encodeURIComponent(place)}/report.html`}
                    target="_blank"
                    rel="noreferrer"
                  >
                    {each.name || each.scenario || place}
                  </a>
                  <div className="quiet">
                    {each.began.slice(0, 16).replace("T", " ")} {each.clock} {each.tags.join(" ")}
                  </div>
                </td>
                <td>{each.runs}</td>
                <td>
                  {each.status}
                  {each.verified === "no" ? ", not verified" : ""}
                </td>
                <td>{each.result}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {experiments.length === 0 && <p className="quiet">There are no experiments here yet.</p>}
    </section>
  );
}
