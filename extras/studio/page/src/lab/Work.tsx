// What is done with the lab: bring it up, verify it, take it down, run it in the virtual clock.

import { api } from "../api";
import { isChange, isRun, Jobs } from "../common/Jobs";
import { useStudio } from "../common/studio";
import type { Begin } from "../server";
import type { LabDocument } from "./document";

export function Work({ document }: { document: LabDocument }) {
  const { labs, jobs, view, now, fail } = useStudio();
  const lab = document.drawing?.lab ?? null;
  const up = labs.some((each) => each.lab === lab);
  const busy = jobs.some((job) => job.state === "running" && !isRun(job) && !isChange(job));
  const beside = jobs.some((job) => job.state === "running" && isRun(job));
  const wrong = document.refusal !== null;
  const work = async (begin: () => Promise<unknown>) => {
    try {
      await begin();
      now();
    } catch (error) {
      fail((error as Error).message);
    }
  };
  const lead = (runtime: Begin["runtime"]) =>
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
      {beside && <p className="quiet">A run is at work: links that are verified meanwhile may be late.</p>}
      <Jobs />
    </section>
  );
}
