// A run that is over, on the drawing of its own plan: what its links and flows did at each moment, at any speed.

import { ReactFlowProvider } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { hashOf, placeOf } from "../common/route";
import { useStudio } from "../common/studio";
import { NS, time } from "../common/units";
import type { Places } from "../lab/canvas/arrange";
import { Canvas, type Selected } from "../lab/canvas/Canvas";
import { Frames, FramesOf } from "../lab/frames";
import { addressOf, type Chosen, chosenIn } from "./address";
import { Bar } from "./Bar";
import { FlowCourses, LinkCourses, marksOf } from "./Courses";
import { useClock } from "./clock";
import { Flows, nameOf } from "./Flows";
import { type Loaded, useReplay } from "./loaded";
import { changesBy, downAt, drawingAfter, levelFor, momentsIn } from "./pieces";
import "./replay.css";
import type { Moment, ShownRun } from "../server";

const NOTHING = () => undefined;

export function ReplayPage({ words }: { words: string[] }) {
  const { fail } = useStudio();
  const [experiment = "", run = "1"] = words;
  const loaded = useReplay(experiment, run, fail);
  const { replay } = loaded;
  return (
    <section className="replay" aria-label="Replay">
      {replay ? (
        <Player loaded={loaded} replay={replay} />
      ) : (
        <p className="quiet">
          Run {run} of {experiment} is not here yet. <a href={hashOf("experiments")}>Experiments</a>
        </p>
      )}
    </section>
  );
}

function Player({ loaded, replay }: { loaded: Loaded; replay: ShownRun }) {
  const { experiment } = replay;
  const run = `${replay.run}`;
  const { flows, whole, find, want } = loaded;
  const finest_ns = replay.levels_ns[0] ?? 0;
  const clock = useClock(replay.end_ns, finest_ns || NS.ms);
  const { at_ns, playing, frame_ns, seek } = clock;
  const [chosen, choose] = useState<Chosen>(null);
  const [fine, setFine] = useState(false);

  // The address says what is selected, and the moment at which the time stands still: also one that is opened meanwhile.
  useEffect(() => {
    const opened = () => {
      const { page, words } = placeOf(location.hash);
      if (page !== "replay") return;
      const found = chosenIn(words);
      choose(found.chosen);
      seek(found.at_ns);
    };
    opened();
    addEventListener("hashchange", opened);
    return () => removeEventListener("hashchange", opened);
  }, [seek]);
  useEffect(() => {
    if (!playing) history.replaceState(null, "", addressOf(experiment, run, chosen, at_ns));
  }, [experiment, run, chosen, at_ns, playing]);

  const level = levelFor(replay.levels_ns, playing ? frame_ns : 0);
  useEffect(() => want(level, at_ns), [want, level, at_ns]);
  const changes = changesBy(replay, at_ns);
  const [moved, setMoved] = useState<Places>(new Map());
  const drawing = useMemo(() => {
    const found = drawingAfter(replay, changes);
    const nodes = found.nodes.map((node) => {
      const [x, y] = moved.get(node.name) ?? [node.x, node.y];
      return { ...node, x, y };
    });
    return { ...found, nodes };
  }, [replay, changes, moved]);
  const downNames = downAt(replay, at_ns);
  const down = useMemo(() => new Set(downNames.split("\n").filter(Boolean)), [downNames]);
  const { piece, bin } = find(level, at_ns) ?? {};
  const moments = useMemo<Map<string, Moment>>(
    () => (piece && bin !== undefined ? momentsIn(piece, bin, drawing.links) : new Map()),
    [piece, bin, drawing.links],
  );

  const [frames] = useState(() => new Frames());
  useEffect(() => frames.take([...moments.values()], 0), [frames, moments]);

  const select = useCallback((what: Selected) => {
    if (what?.kind !== "nodes") choose(what);
  }, []);
  const move = useCallback((places: Places) => setMoved((old) => new Map([...old, ...places])), []);
  const marks = useMemo(() => marksOf(replay), [replay]);
  const onSeek = useCallback((at: number) => seek(at * NS.s), [seek]);
  const moment = { cursor: at_ns / NS.s, marks, onSeek };
  const link = chosen?.kind === "link" ? drawing.links.find((each) => each.name === chosen.name) : undefined;
  const flow =
    chosen?.kind === "flow" ? replay.flows.find((each) => nameOf(each) === chosen.name) : undefined;
  const crossed = useMemo(() => new Map(flow?.links.map(([name]) => [name, "there" as const])), [flow]);
  const selected: Selected = chosen?.kind === "flow" ? null : (chosen as Selected);
  return (
    <>
      <section className="replay-drawing" aria-label="Drawing of the run">
        <FramesOf value={frames}>
          <ReactFlowProvider>
            <Canvas
              drawing={drawing}
              running={replay.levels_ns.length > 0}
              down={down}
              path={crossed}
              selected={selected}
              onSelect={select}
              onMove={move}
              onJoin={NOTHING}
              onOpen={NOTHING}
              onRemove={NOTHING}
            />
          </ReactFlowProvider>
        </FramesOf>
      </section>
      <div className="replay-side">
        <h2>
          {replay.scenario}, run {replay.run}
        </h2>
        <p className="quiet">
          {replay.name}, {replay.clock} clock. <a href={hashOf("experiments", experiment)}>Its experiment</a>
        </p>
        {replay.levels_ns.length === 0 && (
          <p data-testid="no-series">
            The links of this run were not sampled, so the drawing shows none of its traffic: its scenario
            says <code>watch: 0</code>, or it was ended before.
          </p>
        )}
        {(link || flow) && (
          <div className="row">
            <h2>{link?.name ?? flow?.name}</h2>
            <button type="button" onClick={() => choose(null)}>
              Close
            </button>
          </div>
        )}
        {link && replay.levels_ns.length > 1 && (
          <label className="scope">
            <input
              type="checkbox"
              checked={fine}
              onChange={(event) => setFine(event.target.checked)}
              data-testid="fine"
            />
            only the part around this moment, in bins of {time((piece ?? whole)?.bin_ns ?? 0)}
          </label>
        )}
        {link && (
          <LinkCourses
            link={link}
            piece={(fine && piece) || whole}
            end_ns={replay.end_ns}
            moments={moments}
            {...moment}
          />
        )}
        {flow && flows && <FlowCourses flow={flow} flows={flows} {...moment} />}
        {!flow && (
          <Flows
            replay={replay}
            flows={flows}
            link={link?.name ?? null}
            at_ns={at_ns}
            onFlow={(each) => choose({ kind: "flow", name: nameOf(each) })}
          />
        )}
      </div>
      <Bar clock={clock} end_ns={replay.end_ns} finest_ns={finest_ns} events={replay.events} />
    </>
  );
}
