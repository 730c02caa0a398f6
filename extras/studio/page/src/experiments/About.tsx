// What was asked, and the report beside it.

import { useState } from "react";
import { api } from "../api";
import { useStudio } from "../common/studio";
import type { Experiment } from "../server";
import { fileOf } from "./api";

export function About({ experiment }: { experiment: Experiment }) {
  return (
    <div className="beside-report">
      <div className="facts">
        {experiment.about.map((words) => (
          <p key={words}>{words}</p>
        ))}
        {experiment.source && <p className="quiet">After {experiment.source}</p>}
        <Pairs
          title="Parameters"
          of={experiment.parameters}
          strong={experiment.varied}
          none="The scenario has no parameters."
        />
        <Pairs title="What was run" of={Object.entries(experiment.facts)} />
        <Pairs title="On what" of={Object.entries(experiment.host)} />
        {experiment.text && (
          <details>
            <summary>The scenario</summary>
            <pre data-testid="scenario-text">{experiment.text}</pre>
          </details>
        )}
      </div>
      <Report experiment={experiment} />
    </div>
  );
}

interface PairsProps {
  title: string;
  of: [string, string][];
  strong?: string[];
  none?: string;
}

export function Pairs({ title, of, strong = [], none = "" }: PairsProps) {
  return (
    <>
      <h3>{title}</h3>
      {of.length === 0 && <p className="quiet">{none}</p>}
      <dl>
        {of.map(([key, words]) => (
          <div key={key} className={strong.includes(key) ? "strong" : ""}>
            <dt>{key}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

/** It has no scripts, and may ask this server for nothing (extras/studio/server/results.py). */
function Report({ experiment }: { experiment: Experiment }) {
  const { view, jobs, now, fail } = useStudio();
  const [begun, setBegun] = useState("");
  const job = jobs.find((each) => each.id === begun);
  const running = begun !== "" && (job === undefined || job.state === "running" || job.state === "waiting");
  const make = () =>
    api.begin("report", experiment.name).then(
      (started) => {
        setBegun(started.id);
        now();
      },
      (error: Error) => fail(error.message),
    );
  const address = fileOf(experiment.name, "report.html");
  return (
    <div className="report">
      <div className="row">
        {experiment.report && (
          <a href={address} target="_blank" rel="noreferrer">
            Open the report alone
          </a>
        )}
        <button type="button" disabled={view || running} onClick={make} data-testid="make-report">
          {running ? "Making the report …" : experiment.report ? "Make it anew" : "Make the report"}
        </button>
        {job && !running && job.status !== 0 && <span className="wrong">{job.err.trim()}</span>}
      </div>
      {experiment.report ? (
        <iframe
          title="Report"
          src={address}
          sandbox="allow-downloads"
          key={`${begun}${running}`}
          data-testid="report"
        />
      ) : (
        <p className="quiet">There is no report yet.</p>
      )}
    </div>
  );
}
