// A scenario: chosen, run in either clock.

import { useState } from "react";
import { api } from "../api";
import { Jobs } from "../common/Jobs";
import { useStudio } from "../common/studio";

export function ScenarioPage() {
  const { files, jobs, view, now, fail } = useStudio();
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
    <section className="whole" aria-label="Scenario">
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
      <Jobs />
    </section>
  );
}
