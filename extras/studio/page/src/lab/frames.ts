// What the links of the lab that is looked at do at this moment, and did over the last seconds. Twenty frames a second of
// hundreds of links are more than React should render: who draws a link watches it, and writes what changed itself.

import { createContext, useContext, useEffect, useState } from "react";
import { type Heading, socket } from "../api";
import { BPS, BYTES, NS } from "../common/units";
import type { Moment } from "../server";

const AGAIN_MS = 1000;
const KEPT_FRAMES = 600; // 30 seconds

export interface Course {
  at: number[];
  rate: number[];
  queue: number[];
  dropped: number[];
  marked: number[];
  lateness: number[]; // µs
}
export const key = (link: string, heading: Heading): string => `${link} ${heading}`;

export interface Now {
  forward: Moment | undefined;
  backward: Moment | undefined;
}
type Watch = (now: Now) => void;

/** Columns of the last frames, of a size that does not grow. */
class Ring {
  readonly rate = new Float32Array(KEPT_FRAMES).fill(Number.NaN);
  readonly queue = new Float32Array(KEPT_FRAMES).fill(Number.NaN);
  readonly dropped = new Float32Array(KEPT_FRAMES).fill(Number.NaN);
  readonly marked = new Float32Array(KEPT_FRAMES).fill(Number.NaN);
  readonly lateness = new Float32Array(KEPT_FRAMES).fill(Number.NaN);
}

export class Frames {
  private moments = new Map<string, Moment>();
  private rings = new Map<string, Ring>();
  private at = new Float64Array(KEPT_FRAMES);
  private count = 0;
  private watches = new Map<string, Set<Watch>>();
  private every = new Set<() => void>();
  private asked = 0;

  /** The directions of all links, as one frame has them; `at` in seconds. */
  take(found: Moment[], at: number): void {
    const place = this.count % KEPT_FRAMES;
    this.at[place] = at;
    this.count += 1;
    this.moments = new Map();
    for (const each of found) {
      const name = key(each.link, each.direction);
      this.moments.set(name, each);
      let ring = this.rings.get(name);
      if (!ring) {
        ring = new Ring();
        this.rings.set(name, ring);
      }
      ring.rate[place] = each.rate_bps / BPS["Mbit/s"];
      ring.queue[place] = each.queue_bytes / BYTES.kB;
      ring.dropped[place] = each.dropped_packets;
      ring.marked[place] = each.marked_packets;
      ring.lateness[place] = each.lateness_ns / NS.us;
    }
    this.tellSoon();
  }

  /** Another lab, or none. */
  forget(): void {
    this.moments = new Map();
    this.rings = new Map();
    this.count = 0;
    this.tellSoon();
  }

  /** From now on `watch` is told before the browser draws next whenever there was a frame; gives what ends it. */
  watch(link: string, watch: Watch): () => void {
    const all = this.watches.get(link) ?? new Set();
    this.watches.set(link, all.add(watch));
    watch(this.now(link));
    return () => {
      all.delete(watch);
      if (all.size === 0) this.watches.delete(link);
    };
  }

  /** As `watch`, of all links. */
  watchAll(watch: () => void): () => void {
    this.every.add(watch);
    return () => this.every.delete(watch);
  }

  now(link: string): Now {
    return {
      forward: this.moments.get(key(link, "forward")),
      backward: this.moments.get(key(link, "backward")),
    };
  }

  course(name: string): Course | undefined {
    const ring = this.rings.get(name);
    if (!ring) return undefined;
    const from = this.count > KEPT_FRAMES ? this.count % KEPT_FRAMES : 0;
    const until = Math.min(this.count, KEPT_FRAMES);
    const inOrder = (column: Float32Array | Float64Array) => [
      ...column.subarray(from, until),
      ...column.subarray(0, from),
    ];
    return {
      at: inOrder(this.at),
      rate: inOrder(ring.rate),
      queue: inOrder(ring.queue),
      dropped: inOrder(ring.dropped),
      marked: inOrder(ring.marked),
      lateness: inOrder(ring.lateness),
    };
  }

  private tellSoon(): void {
    if (this.asked === 0) this.asked = requestAnimationFrame(() => this.tell());
  }

  private tell(): void {
    this.asked = 0;
    for (const watch of this.every) watch();
    for (const [link, all] of this.watches) {
      const now = this.now(link);
      for (const watch of all) watch(now);
    }
  }
}

const Shared = createContext<Frames>(new Frames());
export const FramesOf = Shared.Provider;
export const useWatched = (): Frames => useContext(Shared);

/** Frames of a lab's links, 20 a second. They come back when the server does. */
export function useFrames(lab: string | null): Frames {
  const [frames] = useState(() => new Frames());
  useEffect(() => {
    frames.forget();
    if (lab === null) return;
    let open: WebSocket | null = null;
    let timer = 0;
    let ended = false;
    const begin = () => {
      open = socket(`/ws/live/${encodeURIComponent(lab)}`);
      open.binaryType = "arraybuffer";
      open.onmessage = (event: MessageEvent<ArrayBuffer>) =>
        frames.take(JSON.parse(new TextDecoder().decode(event.data)) as Moment[], Date.now() / 1000);
      open.onclose = () => {
        if (!ended) timer = window.setTimeout(begin, AGAIN_MS);
      };
    };
    begin();
    return () => {
      ended = true;
      clearTimeout(timer);
      open?.close();
      frames.forget();
    };
  }, [lab, frames]);
  return frames;
}
