// The time of a replay: it goes on by itself, at a speed, or stands still and is moved.

import { useCallback, useEffect, useRef, useState } from "react";
import { NS } from "../common/units";

export const SPEEDS = [0.01, 0.1, 0.25, 0.5, 1, 2, 5, 10, 100] as const;
export const DRAWN = 0; // a bin each frame, as fast as it is drawn
const FRAME_MS = 1000 / 30;

export interface Clock {
  at_ns: number;
  playing: boolean;
  speed: number;
  frame_ns: number; // by how much a drawn frame advances
  play: () => void;
  pause: () => void;
  seek: (at_ns: number) => void;
  setSpeed: (speed: number) => void;
}

/** finest_ns: the length of the finest bins. */
export function useClock(end_ns: number, finest_ns: number): Clock {
  const [at_ns, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const now = useRef(0);
  const seek = useCallback(
    (to: number) => {
      now.current = Math.round(Math.min(end_ns, Math.max(0, to)));
      setAt(now.current);
    },
    [end_ns],
  );
  const play = useCallback(() => {
    if (now.current >= end_ns) seek(0);
    setPlaying(end_ns > 0);
  }, [end_ns, seek]);
  const pause = useCallback(() => setPlaying(false), []);
  useEffect(() => {
    if (!playing) return;
    let before = performance.now();
    let request = requestAnimationFrame(function drawn(time) {
      const passed_ms = time - before;
      if (speed === DRAWN || passed_ms >= FRAME_MS - 1) {
        before = time;
        seek(now.current + (speed === DRAWN ? finest_ns : passed_ms * NS.ms * speed));
      }
      if (now.current >= end_ns) setPlaying(false);
      else request = requestAnimationFrame(drawn);
    });
    return () => cancelAnimationFrame(request);
  }, [playing, speed, end_ns, finest_ns, seek]);
  const frame_ns = playing && speed !== DRAWN ? FRAME_MS * NS.ms * speed : finest_ns;
  return { at_ns, playing, speed, frame_ns, play, pause, seek, setSpeed };
}
