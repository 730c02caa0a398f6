// Long work: bring the lab up, verify it, take it down, run it in the virtual clock; what each said. It goes on without the page.

import { api, type Job, type Up } from "../api";
import type { LabDocument } from "../document";

interface Props {
  document: LabDocument;
  labs: Up[];
  jobs: Job[];
  view: boolean;
  now: () => void;
  fail: (why: string) => void;
}

export function Work({ document, labs, jobs, view, now, fail }: Props) {
  const lab = document.drawing?.lab ?? null;
  const up = labs.some((each) => each.lab === lab);
  const busy = jobs.some((job) => job.state === "running");
  const wrong = document.refusal !== null;
  const work = async (begin: () => Promise<unknown>) => {
    try {
      await begin();
      now();
    } catch (error) {
      fail((error as Error).message);
    }
  };
  const lead = (runtime: string) =>
    work(async () => {
      if (!document.saved) await document.save(document.name);
      await api.begin("lab", document.name, { runtime });
    });
  return (
    <section aria-label="Run">
      <fieldset disabled={view} className="row">
        <button type="button" disabled={wrong || up || busy} onClick={() => lead("auto")} data-testid="up">
          Bring up and verify
        </button>
        <button type="button" disabled={wrong || busy} onClick={() => lead("virtual")} data-testid="virtual">
          Verify in the virtual clock
        </button>
        <button
          type="button"
          disabled={!up || busy}
          onClick={() => work(() => api.begin("verify", lab ?? ""))}
          data-testid="verify"
        >
          Verify again
        </button>
        <button
          type="button"
          disabled={!up || busy}
          onClick={() => work(() => api.begin("down", lab ?? ""))}
          data-testid="take-down"
        >
          Take down
        </button>
      </fieldset>
      <ul className="jobs">
        {jobs.slice(0, 20).map((job, at) => (
          <li key={job.id} data-testid={`job-${job.id}`}>
            <details open={at === 0}>
              <summary>
                <span className={`state ${stateOf(job)}`}>{stateOf(job)}</span> {told(job)}
              </summary>
              {job.state === "running" && (
                <button type="button" disabled={view} onClick={() => work(() => api.stop(job.id))}>
                  Stop
                </button>
              )}
              <pre>{`${job.err}${job.out}`.trim() || "…"}</pre>
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}

function stateOf(job: Job): string {
  if (job.state === "running") return "running";
  if (job.state === "lost") return "lost";
  return job.status === 0 ? "done" : job.status === 1 ? "outside" : "refused";
}

/** The command as a person would type it. */
function told(job: Job): string {
  const words = job.words.map((word) => (word.startsWith("/") ? (word.split("/").pop() ?? word) : word));
  return `ewan ${words.join(" ")}`;
}
