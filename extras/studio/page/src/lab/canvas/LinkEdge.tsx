// A link and its words. How full it is, LiveLinks draws; what it does now is written past React.

import { EdgeLabelRenderer, type EdgeProps, useInternalNode } from "@xyflow/react";
import { memo, useEffect, useRef } from "react";
import { rate, size } from "../../common/units";
import type { DrawnLink, Moment } from "../../server";
import { type Now, useWatched } from "../frames";
import { type Place, RADIUS } from "./labels";
import { linkWords, usePlace } from "./words";

/** Whether a link is on the way of the pair that is looked at. */
export type OnPath = "" | "there" | "back" | "both";

export interface LinkData {
  link: DrawnLink;
  down: boolean;
  path: OnPath;
}

const TOLD_MS = 200; // between two numbers: faster nobody reads

export const LinkEdge = memo(function LinkEdge({ id, source, target, data, selected }: EdgeProps) {
  const from = useInternalNode(source);
  const to = useInternalNode(target);
  const place = usePlace(id);
  const { link, down, path } = data as unknown as LinkData;
  if (!from || !to) return null;
  const [a, b] = [from.internals.positionAbsolute, to.internals.positionAbsolute];
  const [x1, y1, x2, y2] = [a.x + RADIUS, a.y + RADIUS, b.x + RADIUS, b.y + RADIUS];
  const along = `M ${x1} ${y1} L ${x2} ${y2}`;
  const look = [
    "react-flow__edge-path link",
    down ? "down" : link.role,
    selected ? "chosen" : "",
    link.bottleneck_of > 0 ? "bottleneck" : "",
  ];
  return (
    <>
      {path && <path d={along} className={`on-path ${path}`} data-testid={`on-path-${link.name}`} />}
      <path id={id} d={along} className={look.join(" ")} data-testid={`link-${link.name}`} />
      <path
        d={along}
        fill="none"
        strokeOpacity={0}
        strokeWidth={18}
        className="react-flow__edge-interaction"
      />
      {place && (
        <EdgeLabelRenderer>
          <LinkWords
            link={link}
            down={down}
            place={place}
            x={x1 + (x2 - x1) * place.along}
            y={y1 + (y2 - y1) * place.along}
          />
        </EdgeLabelRenderer>
      )}
    </>
  );
});

/** What the fuller direction sends, the longer queue, and what both lost and marked. */
function nowWords({ forward, backward }: Now): string {
  const fuller = (backward?.rate_bps ?? 0) > (forward?.rate_bps ?? 0) ? backward : forward;
  if (!fuller) return "";
  const both = (of: (each: Moment) => number) => [forward, backward].map((each) => (each ? of(each) : 0));
  const queue = Math.max(...both((each) => each.queue_bytes));
  const [lost, marked] = [both((each) => each.dropped_packets), both((each) => each.marked_packets)];
  const counted = (counts: number[], word: string) => {
    const sum = counts.reduce((all, each) => all + each, 0);
    return sum > 0 ? `, ${sum} ${word}` : "";
  };
  return `${rate(fuller.rate_bps)}, queue ${size(queue)}${counted(lost, "lost")}${counted(marked, "marked")}`;
}

interface WordsProps {
  link: DrawnLink;
  down: boolean;
  place: Place;
  x: number;
  y: number;
}

function LinkWords({ link, down, place, x, y }: WordsProps) {
  const frames = useWatched();
  const shown = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    let last: Now = { forward: undefined, backward: undefined };
    let told = 0;
    let timer = 0;
    const tell = () => {
      timer = 0;
      told = performance.now();
      const text = down ? "" : nowWords(last);
      if (shown.current && shown.current.textContent !== text) shown.current.textContent = text;
    };
    const ends = frames.watch(link.name, (now) => {
      last = now;
      const left = told + TOLD_MS - performance.now();
      if (left <= 0) tell();
      else if (timer === 0) timer = window.setTimeout(tell, left);
    });
    return () => {
      clearTimeout(timer);
      ends();
    };
  }, [frames, link.name, down]);
  const marked = link.bottleneck_of > 0;
  const { name, text } = linkWords(link);
  return (
    <div
      className="link-words"
      style={{
        transform: `translate(${x}px, ${y}px) scale(calc(1 / var(--zoom))) translate(-50%, -50%) translate(${place.dx}px, ${place.dy}px)`,
      }}
    >
      {place.form !== "line" && marked && <span className="mark">◆ </span>}
      {name && <b>{name}</b>}
      {place.form === "stacked" && <br />}
      {place.form !== "name" && ` ${text}`}
      {place.form === "line" && marked && <span className="mark"> bottleneck</span>}
      {down && <span className="mark failed"> down</span>}
      {place.form !== "name" && <span className="now" data-testid={`now-${link.name}`} ref={shown} />}
    </div>
  );
}
