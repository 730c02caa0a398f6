// What the TCP flows of a node did over the last minute. Pure.

import type { Connection } from "../../server";
export interface FlowCourse {
  at: number[]; // s
  sent: (number | null)[];
  received: (number | null)[];
  cwnd: number[];
  rtt: number[];
}
export type FlowCourses = ReadonlyMap<string, FlowCourse>;

export const KEPT_S = 60;

/** With one look more; what is older than a minute is forgotten, and so is a flow that is gone. */
export function withLook(courses: FlowCourses, flows: Connection[], at: number): FlowCourses {
  return new Map(
    flows.map((flow) => {
      const old = courses.get(flow.id);
      const first = old ? old.at.findIndex((each) => each > at - KEPT_S) : -1;
      const kept = <T>(values: T[] | undefined, value: T): T[] =>
        first < 0 ? [value] : [...(values ?? []).slice(first), value];
      const course: FlowCourse = {
        at: kept(old?.at, at),
        sent: kept(old?.sent, flow.sent_bps),
        received: kept(old?.received, flow.received_bps),
        cwnd: kept(old?.cwnd, flow.cwnd_segments),
        rtt: kept(old?.rtt, flow.rtt_ns),
      };
      return [flow.id, course];
    }),
  );
}

function mean(course: FlowCourse): number {
  const sum = [...course.sent, ...course.received].reduce<number>((all, each) => all + (each ?? 0), 0);
  return sum / course.at.length;
}

/** The flow that moves most; of several alike the one that was it before, so that it does not change to and fro. */
export function largest(courses: FlowCourses, before: string | null): string | null {
  const means = [...courses].map(([id, course]) => [id, mean(course)] as const);
  const most = means.reduce<readonly [string, number] | null>(
    (found, each) => (found && found[1] >= each[1] ? found : each),
    null,
  );
  const own = means.find(([id]) => id === before);
  if (own && most && most[1] <= 2 * own[1]) return own[0];
  return most?.[0] ?? null;
}
