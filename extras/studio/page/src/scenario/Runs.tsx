// Runs: those that wait, in their order; the one at work, point by point; those that have ended. All go on without the page.

import { useEffect, useState } from "react";
import { api } from "../api";
import { isRun, stateOf } from "../common/Jobs";
import { hashOf } from "../common/route";
import { useStudio } from "../common/studio";
import type { ExperimentProgress, Job, PointProgress } from "../server";
import { scenarios } from "./api";

const EVERY_MS = 1000;
const MOST = 12;

export function Runs() {
  const { jobs, view, now, fail } = useStudio();
  const runs = jobs.filter(isRun);
  const waiting = runs.filter((job) => job.state === "waiting").reverse();
  const others = runs.filter((job) => job.state !== "waiting").slice(0, MOST);
  const stop = (job: Job) => api.stop(job.id).then(now, (error: Error) => fail(error.message));
  return (
    <section aria-label="Runs" className="runs">
      <h2>Runs</h2>
      {runs.length === 0 && <p className="quiet">Nothing has been run here yet.</p>}
      {waiting.length > 0 && (
        <ol aria-label="Waiting" data-testid="waiting">
          {waiting.map((job) => (
            <li key={job.id} data-testid={`job-${job.id}`}>
              <span className="state">waiting</span> {nameOf(job)}{" "}
              <button
                type="button"
                disabled={view}
                onClick={() => stop(job)}
                aria-label={`Take ${nameOf(job)} out`}
              >
                Take out
              </button>
            </li>
          ))}
        </ol>
      )}
      <ul className="jobs">
        {others.map((job, at) => (
          <Run key={job.id} job={job} open={at === 0} onStop={() => stop(job)} />
        ))}
      </ul>
    </section>
  );
}

/** `brief, virtual`; with its scale if it has one. */
function nameOf(job: Job): string {
  const after = (word: string) => {
    const at = job.words.indexOf(word);
    return at < 0 ? null : (job.words[at + 1] ?? null);
  };
  const name = (job.words[1]?.split("/").pop() ?? "").replace(".scenario.yaml", "");
  const clock = after("--runtime") === "virtual" ? "virtual" : "live";
  return [name, after("--size"), clock].filter((each) => each !== null).join(", ");
}

function Run({ job, open, onStop }: { job: Job; open: boolean; onStop: () => void }) {
  const { view } = useStudio();
  const [seen, setSeen] = useState(open);
  const progress = useProgress(job, seen);
  const state = stateOf(job);
  const said = `${job.err}${job.out}`.trim();
  return (
    <li data-testid={`job-${job.id}`}>
      <details open={seen} onToggle={(event) => setSeen(event.currentTarget.open)}>
        <summary>
          <span className={`state ${state}`}>{state}</span> {nameOf(job)}{" "}
          <span className="quiet">
            {job.started.slice(0, 16).replace("T", " ")}
            {progress?.stage && `, ${progress.stage}`}
          </span>
        </summary>
        <div className="row">
          {job.state === "running" && (
            <button type="button" disabled={view} onClick={onStop}>
              Stop
            </button>
          )}
          {progress?.report && <a href={hashOf("experiments", progress.directory)}>Results</a>}
          {state === "refused" && <span className="wrong">{said.split("\n").at(-1)}</span>}
        </div>
        {progress && <Points progress={progress} />}
        <details>
          <summary>What it said</summary>
          <pre>{said || "…"}</pre>
        </details>
      </details>
    </li>
  );
}

/** How far it is: asked for again while it is at work and seen. */
function useProgress(job: Job, seen: boolean): ExperimentProgress | null {
  const [progress, setProgress] = useState<ExperimentProgress | null>(null);
  const { id, state } = job;
  useEffect(() => {
    if (!seen) return;
    const now = () => {
      scenarios.points(id).then(setProgress, () => undefined); // jobs tell when the server is gone
    };
    now();
    if (state !== "running") return;
    const timer = setInterval(now, EVERY_MS);
    return () => clearInterval(timer);
  }, [id, state, seen]);
  return progress;
}

function Points({ progress }: { progress: ExperimentProgress }) {
  const { points, varying, metrics } = progress;
  return (
    <div className="points">
      <table data-testid="sweep">
        <thead>
          <tr>
            {varying.length === 0 && <th>point</th>}
            {varying.map((name) => (
              <th key={name}>{name}</th>
            ))}
            <th>state</th>
            {metrics.map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points.map((point) => (
            <tr key={JSON.stringify(point.parameters)}>
              {varying.length === 0 && <td>all</td>}
              {varying.map((name) => (
                <td key={name}>{String(point.parameters[name] ?? "")}</td>
              ))}
              <td title={point.error}>
                <Became point={point} />
              </td>
              {point.results.map((text, at) => (
                <td key={metrics[at]}>{text}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {progress.points_in_all > points.length && (
        <p className="quiet">and {progress.points_in_all - points.length} more points</p>
      )}
    </div>
  );
}

/** `done`; of several runs `2 of 3 done, 1 running`. */
function Became({ point }: { point: PointProgress }) {
  const words = Object.entries(point.became);
  if (words.length === 1) {
    const [word] = words[0] as [string, number];
    return (
      <>
        <span className={`state ${word}`}>{word}</span>
        {point.error && <div className="wrong">{point.error}</div>}
      </>
    );
  }
  return (
    <>
      {words.map(([word, count]) => `${count} ${word}`).join(", ")}
      {point.error && <div className="wrong">{point.error}</div>}
    </>
  );
}
