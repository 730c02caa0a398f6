// Which bins are shown at a moment, and what the links did then. Pure.

import { key } from "../lab/frames";
import type { Drawing, DrawnLink, Moment, Piece, ShownRun } from "../server";

export interface At {
  level: number;
  piece: number;
  bin: number;
}

/** The coarsest bins of which a drawn frame, which advances by so much, misses none. */
export function levelFor(levels_ns: number[], frame_ns: number): number {
  let found = 0;
  for (let level = 1; level < levels_ns.length; level += 1)
    if ((levels_ns[level] ?? 0) <= frame_ns) found = level;
  return found;
}

/** Where a moment is: a bin begins at its begin, where a change takes effect; the end of all belongs to the last. */
export function placeAt(replay: ShownRun, level: number, at_ns: number): At {
  const bin_ns = replay.levels_ns[level] ?? 1;
  const last = Math.max(0, Math.ceil(replay.end_ns / bin_ns) - 1);
  const bin = Math.min(last, Math.max(0, Math.floor(at_ns / bin_ns)));
  return { level, piece: Math.floor(bin / replay.bins), bin: bin % replay.bins };
}

/** What each direction did in a bin; one that is not in the piece did nothing. */
export function momentsIn(piece: Piece, bin: number, links: DrawnLink[]): Map<string, Moment> {
  const found = new Map<string, Moment>();
  for (const { name, forward, backward } of links) {
    if (forward) found.set(key(name, "forward"), nothing(name, "forward"));
    if (backward) found.set(key(name, "backward"), nothing(name, "backward"));
  }
  for (const own of piece.links)
    found.set(key(own.link, own.direction), {
      link: own.link,
      direction: own.direction,
      rate_bps: own.rate_bps[bin] ?? 0,
      queue_bytes: own.queue_bytes[bin] ?? 0,
      dropped_packets: (own.dropped_packets[bin] ?? 0) + (own.lost_packets[bin] ?? 0),
      marked_packets: own.marked_packets[bin] ?? 0,
      lateness_ns: 0,
    });
  return found;
}

function nothing(link: string, direction: Moment["direction"]): Moment {
  return {
    link,
    direction,
    rate_bps: 0,
    queue_bytes: 0,
    dropped_packets: 0,
    marked_packets: 0,
    lateness_ns: 0,
  };
}

/** How many of the changes were made by a moment. */
export function changesBy(replay: ShownRun, at_ns: number): number {
  return replay.changes.filter((change) => change.at_ns <= at_ns).length;
}

/** The drawing after so many changes. */
export function drawingAfter(replay: ShownRun, changes: number): Drawing {
  const links = new Map(
    replay.changes.slice(0, changes).flatMap((change) => change.links.map((link) => [link.name, link])),
  );
  return { ...replay.drawing, links: replay.drawing.links.map((link) => links.get(link.name) ?? link) };
}

/** The links that have failed by a moment and were not mended, in one text, which is the same while they are. */
export function downAt(replay: ShownRun, at_ns: number): string {
  const down = new Set<string>();
  for (const event of replay.events) {
    if (event.at_ns > at_ns) break;
    if (event.kind === "fail") down.add(event.link);
    else if (event.kind === "mend") down.delete(event.link);
  }
  return [...down].sort().join("\n");
}
