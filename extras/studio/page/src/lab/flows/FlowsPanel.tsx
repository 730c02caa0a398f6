// The TCP flows of a node of a lab that is up: goodput, congestion window and RTT now, and over the last minute.

import { useEffect, useRef, useState } from "react";
import { socket } from "../../api";
import { Chart } from "../../common/Chart";
import { rate, time } from "../../common/units";
import type { Connection } from "../../server";
import { type FlowCourse, type FlowCourses, largest, withLook } from "./courses";

const AGAIN_MS = 2000;

interface Looked {
  flows: Connection[] | null; // null: nothing was heard yet
  courses: FlowCourses;
  why: string; // nothing is told
}

const NOTHING: Looked = { flows: null, courses: new Map(), why: "" };

/** Looks while the page is seen. */
function useFlows(lab: string, node: string): Looked {
  const [looked, setLooked] = useState<Looked>(NOTHING);
  useEffect(() => {
    let open: WebSocket | null = null;
    let timer = 0;
    const begin = () => {
      clearTimeout(timer);
      if (open || document.hidden) return;
      const own = socket(`/ws/live/${encodeURIComponent(lab)}/flows?${new URLSearchParams({ node })}`);
      open = own;
      own.binaryType = "arraybuffer";
      own.onmessage = (event: MessageEvent<ArrayBuffer>) => {
        const flows = JSON.parse(new TextDecoder().decode(event.data)) as Connection[];
        const at = performance.now() / 1000;
        setLooked((old) => ({ flows, courses: withLook(old.courses, flows, at), why: "" }));
      };
      own.onclose = (event) => {
        if (open !== own) return;
        open = null;
        setLooked((old) => ({ ...old, why: event.reason }));
        timer = window.setTimeout(begin, AGAIN_MS);
      };
    };
    const end = () => {
      const own = open;
      open = null;
      own?.close();
    };
    const seen = () => (document.hidden ? end() : begin());
    begin();
    document.addEventListener("visibilitychange", seen);
    return () => {
      document.removeEventListener("visibilitychange", seen);
      clearTimeout(timer);
      end();
    };
  }, [lab, node]);
  return looked;
}

const name = (flow: Connection): string => `${flow.port} – ${flow.peer}:${flow.peer_port}`;
const told = (bps: number | null): string => (bps === null ? "" : rate(bps));
const segments = (count: number): string => `${Number(count.toFixed(1))}`;

export function FlowsPanel({ lab, node }: { lab: string; node: string }) {
  const { flows, courses, why } = useFlows(lab, node);
  const [chosen, choose] = useState<string | null>(null);
  const main = useRef<string | null>(null);
  main.current = largest(courses, main.current);
  const shown = [chosen, main.current].map((id) => flows?.find((each) => each.id === id)).find(Boolean);
  const inOrder = flows && [...flows].sort((a, b) => (a.id < b.id ? -1 : 1)); // rows keep their places
  const course = shown && courses.get(shown.id);
  return (
    <fieldset data-testid="flows">
      <legend>TCP flows of {node}</legend>
      {why && <p className="quiet">{why}</p>}
      {flows?.length === 0 && (
        <p className="quiet">None at the moment: start one in the shell, as with iperf3.</p>
      )}
      {inOrder && inOrder.length > 0 && (
        <table className="live-flows">
          <thead>
            <tr>
              <th>port – peer</th>
              <th>sent</th>
              <th>received</th>
              <th>cwnd</th>
              <th>RTT</th>
            </tr>
          </thead>
          <tbody>
            {inOrder.map((flow) => (
              <tr key={flow.id} aria-current={flow.id === shown?.id}>
                <td>
                  <button type="button" className="text" onClick={() => choose(flow.id)}>
                    {name(flow)}
                  </button>{" "}
                  <span className="quiet">{flow.congestion}</span>
                </td>
                <td>{told(flow.sent_bps)}</td>
                <td>{told(flow.received_bps)}</td>
                <td>{flow.cwnd_segments}</td>
                <td>{time(flow.rtt_ns)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {shown && course && <Plots flow={shown} course={course} />}
    </fieldset>
  );
}

function Plots({ flow, course }: { flow: Connection; course: FlowCourse }) {
  const now = course.at.at(-1) ?? 0;
  const at = [...course.at.map((each) => each - now), 0];
  return (
    <section aria-label={name(flow)} data-testid="flow-plots">
      <h3>
        {name(flow)}, {flow.retransmitted_segments} segments sent again
      </h3>
      <Chart
        title="goodput"
        at={at}
        told={rate}
        lines={[
          { label: "sent", values: course.sent, ink: 1 },
          { label: "received", values: course.received, ink: 4, dashed: true },
        ]}
      />
      <Chart
        title="congestion window, segments"
        at={at}
        told={segments}
        lines={[{ label: "cwnd", values: course.cwnd, ink: 3 }]}
      />
      <Chart
        title="smoothed RTT"
        at={at}
        told={time}
        lines={[{ label: "RTT", values: course.rtt, ink: 2 }]}
      />
    </section>
  );
}
