// The flows of a run, with what they do at the moment that is shown.

import type { Heading } from "../api";
import type { FlowPiece, RunFlow, ShownRun } from "../server";
import { flowAt } from "./Courses";

interface Props {
  replay: ShownRun;
  flows: FlowPiece | null;
  link: string | null; // those alone that cross it
  at_ns: number;
  onFlow: (flow: RunFlow) => void;
}

const crosses = (flow: RunFlow, link: string): Heading | null =>
  flow.links.find(([name]) => name === link)?.[1] ?? null;

export const nameOf = (flow: RunFlow): string => `${flow.flow}.${flow.part}`;

export function Flows({ replay, flows, link, at_ns, onFlow }: Props) {
  const shown = link === null ? replay.flows : replay.flows.filter((flow) => crosses(flow, link));
  if (shown.length === 0)
    return (
      <p className="quiet">
        {link === null ? "This run has no flows." : `No flow of this run crosses ${link}.`}
      </p>
    );
  return (
    <section aria-label="Flows">
      <h3>{link === null ? "Flows" : `Flows that cross ${link}`}</h3>
      <table className="flows">
        <thead>
          <tr>
            <th>flow</th>
            <th>goodput</th>
            <th>cwnd</th>
            <th>RTT</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((flow) => {
            const now = flowAt(flows, flow, at_ns);
            return (
              <tr key={nameOf(flow)}>
                <td>
                  <button
                    type="button"
                    className="text"
                    onClick={() => onFlow(flow)}
                    data-testid={`flow-${nameOf(flow)}`}
                  >
                    {flow.name}
                    {flow.part > 0 ? ` (${flow.part})` : ""}
                  </button>{" "}
                  <span className="quiet">{flow.congestion ?? flow.kind}</span>
                </td>
                <td>{now.goodput}</td>
                <td>{now.cwnd}</td>
                <td>{now.rtt}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {replay.more_flows > 0 && (
        <p className="quiet">and {replay.more_flows} more, which are in the tables</p>
      )}
    </section>
  );
}
