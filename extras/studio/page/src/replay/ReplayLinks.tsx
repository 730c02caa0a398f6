// Where an experiment's runs can be seen again: links to their replays, asked for when they are opened.

import { useState } from "react";
import { hashOf } from "../common/route";
import { useStudio } from "../common/studio";
import type { Runs } from "../server";
import { replays } from "./api";

/** experiment: the name of its directory. */
export function ReplayLinks({ experiment }: { experiment: string }) {
  const { fail } = useStudio();
  const [runs, setRuns] = useState<Runs | null>(null);
  const open = (is: boolean) => {
    if (is && !runs) replays.runs(experiment).then(setRuns, (error: Error) => fail(error.message));
  };
  return (
    <details className="replays" onToggle={(event) => open(event.currentTarget.open)}>
      <summary data-testid={`replays-${experiment}`}>replays</summary>
      <ul>
        {runs?.runs.map((run) => (
          <li key={run.number}>
            <a href={hashOf("replay", experiment, `${run.number}`)}>
              run {run.number}
              {run.name ? `: ${run.name}` : ""}
            </a>
            {run.status === "complete" ? "" : ` (${run.status})`}
          </li>
        ))}
      </ul>
      {runs && runs.runs.length === 0 && <p className="quiet">No run has left anything yet.</p>}
      {runs && runs.more > 0 && (
        <p className="quiet">
          and {runs.more} more: write #/replay/{experiment}/NUMBER
        </p>
      )}
    </details>
  );
}
