// Long work and what it said. It goes on without the page.

import { api } from "../api";
import type { Job } from "../server";
import { useStudio } from "./studio";

const MOST = 20;

/** Whether a job is an experiment, which waits for its turn. */
export const isRun = (job: Job): boolean => job.words[0] === "run";

/** Whether a job changes a link at a later time. */
export const isChange = (job: Job): boolean => job.words[0] === "lab" && job.words[1] === "set";

/** Whether a job has left a certificate, which is shown by itself. */
const isMeasured = (job: Job): boolean =>
  job.words[0] === "lab" && !isChange(job) && (job.status === 0 || job.status === 1);

/** Work on labs. */
export function Jobs() {
  const { jobs: all, view, now, fail } = useStudio();
  const jobs = all.filter((job) => !isRun(job));
  const stop = (job: Job) => api.stop(job.id).then(now, (error: Error) => fail(error.message));
  return (
    <ul className="jobs">
      {jobs.slice(0, MOST).map((job, at) => (
        <li key={job.id} data-testid={`job-${job.id}`}>
          <details open={at === 0 && !isMeasured(job)}>
            <summary>
              <span className={`state ${stateOf(job)}`}>{stateOf(job)}</span> {told(job)}
            </summary>
            {job.state === "running" && (
              <button type="button" disabled={view} onClick={() => stop(job)}>
                Stop
              </button>
            )}
            <pre>{`${job.err}${job.out}`.trim() || "…"}</pre>
          </details>
        </li>
      ))}
    </ul>
  );
}

export function stateOf(job: Job): string {
  if (job.state !== "ended") return job.state;
  return job.status === 0 ? "done" : job.status === 1 ? "outside" : "refused";
}

/** The command as a person would type it. */
export function told(job: Job): string {
  const words = job.words.map((word) => (word.startsWith("/") ? (word.split("/").pop() ?? word) : word));
  return `ewan ${words.join(" ")}`;
}
