// The time of a replay: play, speed, the moment, and what was done to links when.

import { useEffect } from "react";
import { NS } from "../common/units";
import type { RunEvent } from "../server";
import { type Clock, DRAWN, SPEEDS } from "./clock";

interface Props {
  clock: Clock;
  end_ns: number;
  finest_ns: number;
  events: RunEvent[];
}

const MOST_MARKS = 300;
const SIGNS = { set: "◆", fail: "✕", mend: "○" } as const;
const KINDS = { set: "set", fail: "failed", mend: "mended" } as const;
const KEPT_KEYS = "input, select, textarea, .react-flow__node, .react-flow__edge, [contenteditable]";

export function seconds(ns: number, finest_ns: number): string {
  const digits = Math.max(1, Math.min(6, Math.ceil(9 - Math.log10(Math.max(1, finest_ns)))));
  return `${(ns / NS.s).toFixed(digits)} s`;
}

export function Bar({ clock, end_ns, finest_ns, events }: Props) {
  const { at_ns, playing, speed, play, pause, seek, setSpeed } = clock;
  const step = finest_ns || 1;
  useKeys(clock, step, end_ns);
  const none = end_ns === 0;
  return (
    <section className="replay-bar" aria-label="Time">
      <div className="row">
        <button
          type="button"
          onClick={playing ? pause : play}
          disabled={none}
          aria-label={playing ? "Pause" : "Play"}
          data-testid="play"
        >
          {playing ? "❚❚" : "▶"}
        </button>
        <button type="button" onClick={() => seek(at_ns - step)} disabled={none} aria-label="Back by a frame">
          ◂
        </button>
        <button
          type="button"
          onClick={() => seek(at_ns + step)}
          disabled={none}
          aria-label="Forward by a frame"
          data-testid="step"
        >
          ▸
        </button>
        <label className="speed">
          speed
          <select
            value={speed}
            onChange={(event) => setSpeed(Number(event.target.value))}
            data-testid="speed"
          >
            {SPEEDS.map((each) => (
              <option key={each} value={each}>
                {each}×
              </option>
            ))}
            <option value={DRAWN}>as fast as it is drawn</option>
          </select>
        </label>
        <output data-testid="moment">
          {seconds(at_ns, finest_ns)} of {seconds(end_ns, finest_ns)}
        </output>
        <span className="quiet keys">space plays, ← and → move by a frame</span>
      </div>
      <div className="track">
        <div className="marks">
          {events.slice(0, MOST_MARKS).map((event) => (
            <button
              key={`${event.at_ns} ${event.words}`}
              type="button"
              className={`event ${event.kind}`}
              style={{ left: `${(event.at_ns / Math.max(1, end_ns)) * 100}%` }}
              title={`${seconds(event.at_ns, finest_ns)}: ${event.words}`}
              aria-label={`${KINDS[event.kind]} at ${seconds(event.at_ns, finest_ns)}: ${event.words}`}
              onClick={() => seek(event.at_ns)}
              data-testid={`event-${event.kind}`}
            >
              {SIGNS[event.kind]}
            </button>
          ))}
        </div>
        <input
          type="range"
          min={0}
          max={end_ns}
          step={step}
          value={at_ns}
          disabled={none}
          onChange={(event) => seek(Number(event.target.value))}
          aria-label="Moment"
          aria-valuetext={seconds(at_ns, finest_ns)}
          data-testid="slider"
        />
      </div>
    </section>
  );
}

/** Keys that nobody else takes: a field has its own, and so has a node, which arrows move. */
function useKeys({ at_ns, playing, play, pause, seek }: Clock, step: number, end_ns: number): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as Element;
      if (event.ctrlKey || event.altKey || event.metaKey || target.closest(KEPT_KEYS)) return;
      const button = target.closest("button, a, summary") !== null;
      if (event.key === " " && !button) (playing ? pause : play)();
      else if (event.key === "ArrowRight") seek(at_ns + step);
      else if (event.key === "ArrowLeft") seek(at_ns - step);
      else if (event.key === "Home") seek(0);
      else if (event.key === "End") seek(end_ns);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [at_ns, playing, play, pause, seek, step, end_ns]);
}
