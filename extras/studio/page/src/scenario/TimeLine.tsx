// Steps as bars and events as marks, over the time of a run. A mark can be dragged, or moved with the arrow keys.

import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { duration, NS, time } from "../common/units";
import type { ScenarioOutline, StepOutline } from "../server";
import { lanesOf, moved, type Placed, snapped, spanOf, ticksOf } from "./times";

const SHOWN_BARS = 24;
const LETTER = 1 / 85; // of the line's width, at 1280 pixels
const LANE = 26;

interface Props {
  outline: ScenarioOutline | null;
  events: Placed[];
  locked: boolean;
  looked: { step: number | null; event: number | null };
  onStep: (number: number) => void;
  onEvent: (number: number) => void;
  onMove: (number: number, at_ns: number) => void;
}

export function TimeLine({ outline, events, locked, looked, onStep, onEvent, onMove }: Props) {
  const [held, setHeld] = useState<number | null>(null); // the line does not grow under a mark that is dragged
  const span = held ?? spanOf(outline, events);
  const share = (ns: number) => `${(100 * Math.min(ns, span)) / span}%`;
  const links = [...new Set(events.map((each) => each.link))];
  const ends = outline?.expected_ns ?? 0;
  return (
    <section className="time-line" aria-label="Time line">
      <div className="names" aria-hidden="true" />
      <div className="axis" aria-hidden="true">
        {ticksOf(span).map((tick) => (
          <span key={tick} className="tick" style={{ left: share(tick) }}>
            {duration(tick)}
          </span>
        ))}
      </div>
      {outline?.steps.map((step, number) => (
        <StepRow
          key={step.name}
          step={step}
          span={span}
          ends={ends}
          looked={looked.step === number}
          onLook={() => onStep(number)}
        />
      ))}
      {links.map((link) => {
        const own = events.filter((each) => each.link === link);
        const lanes = lanesOf(
          own.map((each) => ({
            at: (each.at_ns ?? 0) / span,
            letters: each.at.length + each.words.length + 1,
          })),
          LETTER,
        );
        return (
          <EventRow key={link} link={link} lanes={Math.max(...lanes) + 1}>
            {own.map((each, at) => (
              <Mark
                key={each.number}
                event={each}
                span={span}
                lane={lanes[at] ?? 0}
                locked={locked || !each.movable}
                looked={looked.event === each.number}
                onLook={() => onEvent(each.number)}
                onHold={(is) => setHeld(is ? span : null)}
                onMove={(ns) => onMove(each.number, ns)}
              />
            ))}
          </EventRow>
        );
      })}
    </section>
  );
}

interface RowProps {
  step: StepOutline;
  span: number;
  ends: number;
  looked: boolean;
  onLook: () => void;
}

function StepRow({ step, span, ends, looked, onLook }: RowProps) {
  const bars = step.bars.slice(0, SHOWN_BARS);
  const first = Math.min(...step.bars.map((bar) => bar.start_ns));
  const last = Math.max(...step.bars.map((bar) => bar.end_ns ?? ends));
  const exact = step.bars.every((bar) => bar.exact);
  const when =
    step.flows === 0
      ? "nobody"
      : `${time(first)} to ${step.kind === "run" ? "its end" : `${exact ? "" : "about "}${time(last)}`}`;
  const told = `${step.kind}, ${step.who}, ${when}${step.words ? `, ${step.words}` : ""}`;
  return (
    <>
      <button
        type="button"
        className={`name ${looked ? "looked" : ""}`}
        onClick={onLook}
        data-testid={`step-${step.name}`}
        title={told}
      >
        <b>{step.name}</b> <span className="quiet">{step.who}</span>
      </button>
      <div className={`track ${step.kind}`} role="img" aria-label={told}>
        {bars.map((bar, at) => (
          <i
            // biome-ignore lint/suspicious/noArrayIndexKey: a member has no name of its own
            key={at}
            className={bar.end_ns === null ? "open" : bar.exact ? "" : "about"}
            style={{
              left: `${(100 * bar.start_ns) / span}%`,
              width: `${(100 * Math.max((bar.end_ns ?? ends) - bar.start_ns, 0)) / span}%`,
              top: `${(100 * at) / bars.length}%`,
              height: `${100 / bars.length}%`,
            }}
          />
        ))}
        <span className="told" style={{ left: `${(100 * Math.min(first, span * 0.6)) / span}%` }}>
          {step.kind}
          {step.words && ` ${step.words}`}
          {step.flows > 1 && ` × ${step.flows}`}
          {step.after.length > 0 && `, after ${step.after.join(", ")}`}
        </span>
      </div>
    </>
  );
}

function EventRow({ link, lanes, children }: { link: string; lanes: number; children: React.ReactNode }) {
  return (
    <>
      <div className="name">
        <b>{link}</b> <span className="quiet">events</span>
      </div>
      <div className="track events" style={{ height: `${lanes * LANE + 4}px` }}>
        {children}
      </div>
    </>
  );
}

interface MarkProps {
  event: Placed;
  span: number;
  lane: number;
  locked: boolean;
  looked: boolean;
  onLook: () => void;
  onHold: (is: boolean) => void;
  onMove: (ns: number) => void;
}

function Mark({ event, span, lane, locked, looked, onLook, onHold, onMove }: MarkProps) {
  const from = useRef<{ x: number; at: number } | null>(null);
  const at = event.at_ns ?? 0;
  const down = (press: PointerEvent<HTMLButtonElement>) => {
    onLook();
    if (locked || press.button !== 0) return;
    press.currentTarget.setPointerCapture(press.pointerId);
    from.current = { x: press.clientX, at };
    onHold(true);
  };
  const move = (press: PointerEvent<HTMLButtonElement>) => {
    const begun = from.current;
    const width = press.currentTarget.parentElement?.clientWidth;
    if (!begun || !width) return;
    const ns = snapped(begun.at + ((press.clientX - begun.x) / width) * span, span);
    if (ns !== at) onMove(ns);
  };
  const up = () => {
    from.current = null;
    onHold(false);
  };
  const key = (press: KeyboardEvent) => {
    if (locked) return;
    const ns = moved(press.key, press.shiftKey, at, span);
    if (ns === null) return;
    press.preventDefault();
    onMove(ns);
  };
  return (
    <button
      type="button"
      role="slider"
      className={`mark-of-event ${looked ? "looked" : ""}`}
      style={{ left: `${(100 * Math.min(at, span)) / span}%`, top: `${lane * LANE + 2}px` }}
      aria-label={`${event.link}: ${event.words}`}
      aria-valuemin={0}
      aria-valuemax={Math.round(span / NS.ms)}
      aria-valuenow={Math.round(at / NS.ms)}
      aria-valuetext={event.at}
      aria-disabled={locked}
      title={
        event.movable
          ? `${event.at} ${event.words}: drag it, or use the arrow keys`
          : `${event.at} ${event.words}: a parameter or a state says when`
      }
      data-testid={`event-${event.number}`}
      onPointerDown={down}
      onPointerMove={move}
      onPointerUp={up}
      onPointerCancel={up}
      onFocus={onLook}
      onKeyDown={key}
    >
      <span>
        {event.at} {event.words}
      </span>
    </button>
  );
}
