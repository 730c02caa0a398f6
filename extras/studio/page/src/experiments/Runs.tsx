// The runs of an experiment: at which point of the parameters, how they ended, in which lab.

import { hashOf } from "../common/route";
import type { Experiment, ExperimentRun } from "../server";

export function Runs({ experiment }: { experiment: Experiment }) {
  return (
    <>
      <table data-testid="runs">
        <thead>
          <tr>
            <th>run</th>
            {experiment.varied.map((name) => (
              <th key={name}>{name}</th>
            ))}
            <th>seed</th>
            <th>status</th>
            <th>bottleneck</th>
            <th>certificate</th>
            {experiment.watched && <th>disturbed</th>}
            <th>look at it</th>
          </tr>
        </thead>
        <tbody>
          {experiment.runs.map((run) => (
            <Line key={run.number} experiment={experiment} run={run} />
          ))}
        </tbody>
      </table>
      {experiment.few_runs && <p className="quiet">{experiment.few_runs}</p>}
      <Disturbances experiment={experiment} />
    </>
  );
}

function Line({ experiment, run }: { experiment: Experiment; run: ExperimentRun }) {
  return (
    <tr>
      <td className="number">{run.number}</td>
      {run.point.map((value, at) => (
        <td key={experiment.varied[at]}>{value}</td>
      ))}
      <td className="number">{run.seed}</td>
      <td>
        <span className={run.status === "complete" ? "up" : "wrong"}>{run.status}</span>
        {run.error && <div className="wrong">{run.error}</div>}
      </td>
      <td>{run.bottleneck}</td>
      <td>
        {run.certificate === "none" ? (
          "none"
        ) : (
          <a href={hashOf("experiments", experiment.name, "certificates", run.certificate)}>
            {run.certificate}
          </a>
        )}
        {run.verified === false && <span className="wrong"> NOT verified</span>}
      </td>
      {experiment.watched && <td>{run.disturbed}</td>}
      <td>
        {run.measured && (
          <div className="row">
            <a
              href={hashOf("experiments", experiment.name, "figure", `goodput over time, run ${run.number}`)}
            >
              over time
            </a>
            <a href={hashOf("replay", experiment.name, `${run.number}`)}>replay</a>
          </div>
        )}
      </td>
    </tr>
  );
}

function Disturbances({ experiment }: { experiment: Experiment }) {
  if (!experiment.watched) return null;
  return (
    <>
      <h3>What disturbed the links while the runs went</h3>
      {experiment.disturbances.length === 0 && <p className="quiet">Nothing did.</p>}
      <ul>
        {experiment.disturbances.map((each) => (
          <li key={`${each.run} ${each.time} ${each.words}`}>
            run {each.run}, {each.time} s: {each.words}
            {each.marks && <b className="wrong"> out of tolerance</b>}
          </li>
        ))}
      </ul>
      {experiment.more_disturbances > 0 && (
        <p className="quiet">{experiment.more_disturbances} more are in the report.</p>
      )}
    </>
  );
}
