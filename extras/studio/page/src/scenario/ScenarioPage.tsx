// A scenario: its text on the left; on the right its time line, its events, its points, and the runs of it.

import { useEffect, useMemo, useRef, useState } from "react";
import { linesOf, withValue } from "../common/edit";
import { Editor } from "../common/editor/Editor";
import type { Schema } from "../common/editor/words";
import { hashOf } from "../common/route";
import { useStudio } from "../common/studio";
import { duration, time } from "../common/units";
import { Verdict } from "../common/Verdict";
import { scenarios } from "./api";
import { Begin } from "./Begin";
import { useScenarioDocument } from "./document";
import { Events } from "./Events";
import { Runs } from "./Runs";
import { Sweep } from "./Sweep";
import { TimeLine } from "./TimeLine";
import { eventsOf, type Placed } from "./times";
import "./scenario.css";

type Looked = { step: number | null; event: number | null };
const NOTHING: Looked = { step: null, event: null };

export function ScenarioPage({ asked }: { asked: string | null }) {
  const { files, view, fail } = useStudio();
  const [schema, setSchema] = useState<Schema | null>(null);
  const [virtual, setVirtual] = useState(true);
  const [scale, setScale] = useState<string | null>(null);
  const [point, setPoint] = useState(1);
  const [looked, setLooked] = useState<Looked>(NOTHING);
  const document = useScenarioDocument({ virtual, scale, point }, fail);
  const { text, name, refusal, change, open, same, found: outline } = document;

  useEffect(() => {
    scenarios.schema().then(
      (found) => setSchema(found as Schema),
      (error: Error) => fail(error.message),
    );
  }, [fail]);

  const opened = useRef(name);
  opened.current = name;
  const known = files.length > 0;
  const handled = useRef<string | null>(null); // of the address, that was opened
  useEffect(() => {
    if (asked === null || !known || asked === handled.current) return;
    handled.current = asked;
    if (asked === opened.current) return;
    const file = files.find((each) => each.name === asked) ?? { name: asked, where: "here" as const };
    open(file).catch((error: Error) => fail(error.message));
  }, [asked, known, files, open, fail]);
  const placed = document.where != null;
  useEffect(() => {
    if (asked !== null && asked !== handled.current) return; // it is about to be opened
    history.replaceState(null, "", placed ? hashOf("scenario", name) : hashOf("scenario"));
  }, [asked, name, placed]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another scenario has other points and scales
  useEffect(() => {
    setPoint(1);
    setScale(null);
    setLooked(NOTHING);
  }, [name]);

  const last = useRef<Placed[]>([]);
  const events = useMemo(() => eventsOf(text, outline?.events ?? []) ?? last.current, [text, outline]);
  last.current = events;
  const steps = outline?.steps.length ?? 0;
  const line = useMemo(() => {
    const { step, event } = looked;
    const path = step !== null ? ["steps", step] : event !== null ? ["events", event] : null;
    return path && (linesOf(text, path)?.[0] ?? null);
  }, [looked, text]);
  const atLine = (number: number) => {
    const within = (path: (string | number)[]) => {
      const lines = linesOf(text, path);
      return lines !== null && lines[0] <= number && number <= lines[1];
    };
    const step = Array.from({ length: steps }, (_, at) => at).find((at) => within(["steps", at]));
    const event = events.find((each) => within(["events", each.number]))?.number;
    setLooked({ step: step ?? null, event: event ?? null });
  };
  return (
    <div className="scenario">
      <div className="left">
        <Begin
          document={document}
          scales={outline?.scales ?? []}
          scale={scale}
          virtual={virtual}
          onScale={setScale}
          onVirtual={setVirtual}
        />
        <Editor
          text={text}
          refusal={refusal}
          schema={schema}
          onChange={change}
          label="scenario"
          testId="scenario-text"
          line={line}
          onLine={atLine}
        />
        <p className="wrong" role="alert" data-testid="scenario-refusal">
          {refusal ? `line ${refusal.line}: ${refusal.message}` : ""}
        </p>
      </div>
      <div className={`right ${refusal ? "stale" : ""}`}>
        <div className="row">
          <h2>{outline?.title ?? name}</h2>
          {outline && (
            <span className="quiet">
              lab {outline.lab}, a run of about {time(outline.expected_ns)}
              {outline.points_in_all > 1 && `, point ${outline.point} of ${outline.points_in_all}`}
            </span>
          )}
          {refusal && <span className="wrong">line {refusal.line} is wrong; this is as it was before</span>}
          {!same && <span className="quiet">not saved</span>}
        </div>
        <TimeLine
          outline={outline}
          events={events}
          locked={view}
          looked={looked}
          onStep={(step) => setLooked({ step, event: null })}
          onEvent={(event) => setLooked({ step: null, event })}
          onMove={(number, ns) => change(withValue(text, ["events", number, "at"], duration(ns)))}
        />
        <Verdict
          name={name}
          where={document.where ?? "here"}
          text={text}
          scale={scale}
          right={refusal === null}
        />
        <div className="columns">
          <Events document={document} events={events} links={outline?.links ?? []} looked={looked.event} />
          {outline && <Sweep document={document} outline={outline} onPoint={setPoint} />}
        </div>
        <Runs />
      </div>
    </div>
  );
}
