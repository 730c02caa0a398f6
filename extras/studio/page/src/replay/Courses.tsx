// What is selected, over a whole run or a part of it: a link's rate, queue, drops and marks each way; a flow's goodput, cwnd, RTT.

import { useMemo } from "react";
import type { Heading } from "../api";
import { Chart, type ChartLine, type ChartMark } from "../common/Chart";
import { NS, rate, size, time } from "../common/units";
import { key } from "../lab/frames";
import type { DrawnLink, FlowPiece, LinkBins, Moment, Piece, RunFlow, ShownRun } from "../server";

interface Time {
  cursor: number;
  marks: ChartMark[];
  onSeek: (at: number) => void;
}

const begins = (bins: number, bin_ns: number, begin_ns = 0): number[] =>
  Array.from({ length: bins + 1 }, (_, bin) => (begin_ns + bin * bin_ns) / NS.s);
const packets = (count: number): string => `${Number(count.toFixed(1))}`;

interface LinkProps extends Time {
  link: DrawnLink;
  piece: Piece | null; // the bins that are drawn
  end_ns: number;
  moments: Map<string, Moment>;
}

export function LinkCourses({ link, piece, end_ns, moments, ...time }: LinkProps) {
  if (link.role === "plain")
    return <p>{link.name} is a wire: it delays nothing, and nothing is recorded of it.</p>;
  return (
    <>
      {(["forward", "backward"] as const).map((way) => (
        <Direction
          key={way}
          {...{ link, way, piece, end_ns }}
          now={moments.get(key(link.name, way))}
          {...time}
        />
      ))}
    </>
  );
}

interface DirectionProps extends Time {
  link: DrawnLink;
  way: Heading;
  piece: Piece | null; // the bins that are drawn
  end_ns: number;
  now: Moment | undefined;
}

function Direction({ link, way, piece, end_ns, now, ...time }: DirectionProps) {
  const [from, to] = way === "forward" ? [link.a, link.b] : [link.b, link.a];
  const own = piece?.links.find((each) => each.link === link.name && each.direction === way);
  const drawn = useMemo(() => (piece && own ? linesOf(piece, own, end_ns) : null), [piece, own, end_ns]);
  return (
    <section aria-label={`${from} to ${to}`}>
      <h3>
        {from} → {to}
      </h3>
      {now && (
        <p className="values" data-testid={`values-${way}`}>
          <b>{rate(now.rate_bps)}</b> of {rate(link[way]?.rate_bps ?? 0)}, queue{" "}
          <b>{size(now.queue_bytes)}</b>, {now.dropped_packets} dropped or lost, {now.marked_packets} marked
        </p>
      )}
      {drawn ? (
        <>
          <Chart title="rate" told={rate} {...drawn.rate} {...time} />
          <Chart title="queue, its largest" told={size} {...drawn.queue} {...time} />
          <Chart title="packets" told={packets} {...drawn.counts} {...time} />
        </>
      ) : (
        <p className="quiet">Nothing went this way.</p>
      )}
    </section>
  );
}

type Drawn = Record<"rate" | "queue" | "counts", { at: number[]; lines: ChartLine[] }>;

function linesOf(piece: Piece, own: LinkBins, end_ns: number): Drawn {
  const bins = Math.max(1, Math.min(piece.bins, Math.ceil((end_ns - piece.begin_ns) / piece.bin_ns)));
  const at = begins(bins, piece.bin_ns, piece.begin_ns);
  const cut = (values: number[]) => values.slice(0, bins);
  const capacity = at
    .slice(0, bins)
    .map((_, bin) => own.capacity_bps[own.capacity_bps.length === 1 ? 0 : bin] ?? 0);
  const lost = own.dropped_packets.map((dropped, bin) => dropped + (own.lost_packets[bin] ?? 0));
  return {
    rate: {
      at,
      lines: [
        { label: "sent", values: cut(own.rate_bps), ink: 1 },
        { label: "carries", values: capacity, ink: 4, dashed: true },
      ],
    },
    queue: { at, lines: [{ label: "queue", values: cut(own.queue_bytes), ink: 2 }] },
    counts: {
      at,
      lines: [
        { label: "dropped or lost", values: cut(lost), ink: 2 },
        { label: "marked", values: cut(own.marked_packets), ink: 3, dashed: true },
      ],
    },
  };
}

interface FlowProps extends Time {
  flow: RunFlow;
  flows: FlowPiece;
}

export function FlowCourses({ flow, flows, ...time_ }: FlowProps) {
  const own = flows.flows.find((each) => each.flow === flow.flow && each.part === flow.part);
  const drawn = useMemo(() => {
    const at = begins(flows.bins, flows.bin_ns);
    const line = (label: string, values: (number | null)[], ink: ChartLine["ink"]) => ({
      at,
      lines: [{ label, values, ink }],
    });
    return (
      own && {
        goodput: line("goodput", own.goodput_bps, 1),
        cwnd: line("cwnd", own.cwnd_segments, 3),
        rtt: line("RTT", own.rtt_ns, 2),
      }
    );
  }, [flows, own]);
  if (!drawn) return <p className="quiet">Nothing was sampled of this flow.</p>;
  return (
    <>
      <Chart title="goodput" told={rate} {...drawn.goodput} {...time_} />
      <Chart title="congestion window, segments" told={packets} {...drawn.cwnd} {...time_} />
      <Chart title="smoothed RTT" told={time} {...drawn.rtt} {...time_} />
    </>
  );
}

/** What a flow did at a moment. */
export function flowAt(flows: FlowPiece | null, flow: RunFlow, at_ns: number) {
  const own = flows?.flows.find((each) => each.flow === flow.flow && each.part === flow.part);
  const bin = Math.min((flows?.bins ?? 1) - 1, Math.floor(at_ns / (flows?.bin_ns ?? 1)));
  const value = (values: (number | null)[] | undefined, told: (value: number) => string) => {
    const found = values?.[bin];
    return found === null || found === undefined ? "" : told(found);
  };
  return {
    goodput: value(own?.goodput_bps, rate),
    cwnd: value(own?.cwnd_segments, packets),
    rtt: value(own?.rtt_ns, time),
  };
}

export function marksOf(replay: ShownRun): ChartMark[] {
  return replay.events.map((event) => ({ at: event.at_ns / NS.s, words: event.words }));
}
