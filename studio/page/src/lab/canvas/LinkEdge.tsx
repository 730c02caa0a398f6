// A link: its colour and width are how full it is, its words what it does.

import { BaseEdge, EdgeLabelRenderer, type EdgeProps, useInternalNode } from "@xyflow/react";
import { memo } from "react";
import type { DrawnLink, Moment } from "../../api";
import { rate, size, time } from "../../common/units";
import { key } from "../frames";

export interface LinkData {
  link: DrawnLink;
  moments: Map<string, Moment>;
  down: boolean;
}

const WIDEST = 9;
const RADIUS = 14; // of a node, as style.css has it

/** How full the fuller direction is, 0 to 1; null where nobody tells. */
function fill(link: DrawnLink, moments: Map<string, Moment>): number | null {
  const ways = [
    [link.forward, moments.get(key(link.name, "forward"))],
    [link.backward, moments.get(key(link.name, "backward"))],
  ] as const;
  const known = ways.flatMap(([way, moment]) => (way && moment ? [moment.rate_bps / way.rate_bps] : []));
  return known.length === 0 ? null : Math.min(1, Math.max(...known));
}

function words(link: DrawnLink): string {
  const way = link.forward;
  if (!way) return "";
  const back = link.backward;
  const one = `${rate(way.rate_bps)} ${time(way.delay_ns)}`;
  if (!back || (back.rate_bps === way.rate_bps && back.delay_ns === way.delay_ns)) return one;
  return `${one} → / ← ${rate(back.rate_bps)} ${time(back.delay_ns)}`;
}

export const LinkEdge = memo(function LinkEdge({ id, source, target, data, selected }: EdgeProps) {
  const from = useInternalNode(source);
  const to = useInternalNode(target);
  if (!from || !to || !data) return null;
  const { link, moments, down } = data as unknown as LinkData;
  const middle = (node: typeof from): [number, number] => [
    node.internals.positionAbsolute.x + RADIUS,
    node.internals.positionAbsolute.y + RADIUS,
  ];
  const [x1, y1] = middle(from);
  const [x2, y2] = middle(to);
  const full = fill(link, moments);
  const moment = moments.get(key(link.name, "forward"));
  const look = down ? "down" : link.role;
  return (
    <>
      <BaseEdge
        id={id}
        path={`M ${x1} ${y1} L ${x2} ${y2}`}
        className={`link ${look}${selected ? " chosen" : ""}${link.bottleneck_of > 0 ? " bottleneck" : ""}`}
        style={
          full === null || down
            ? {}
            : {
                strokeWidth: 2 + full * WIDEST,
                stroke: `color-mix(in oklab, var(--full) ${Math.round(full * 100)}%, var(--idle))`,
              }
        }
        interactionWidth={18}
      />
      {link.role !== "plain" && (
        <EdgeLabelRenderer>
          <div
            className="link-words"
            style={{
              transform: `translate(-50%, -50%) translate(${(x1 + x2) / 2}px, ${(y1 + y2) / 2 - 16}px)`,
            }}
          >
            <b>{link.name}</b> {words(link)}
            {link.bottleneck_of > 0 && <span className="mark"> bottleneck</span>}
            {moment && !down && (
              <span className="now" data-testid={`now-${link.name}`}>
                {" "}
                {rate(moment.rate_bps)}, queue {size(moment.queue_bytes)}
                {moment.dropped_packets > 0 && `, ${moment.dropped_packets} lost`}
                {(moment.marked_packets ?? 0) > 0 && `, ${moment.marked_packets} marked`}
              </span>
            )}
            {down && <span className="mark"> down</span>}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
});
