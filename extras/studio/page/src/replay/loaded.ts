// A run that is shown again: what there is of it, and its pieces, each asked for once and some kept.

import { useCallback, useEffect, useRef, useState } from "react";
import type { FlowPiece, Piece, ShownRun } from "../server";
import { replays } from "./api";
import { type At, placeAt } from "./pieces";

const MOST_KEPT = 24;
const AGAIN_MS = 2000;

export interface Loaded {
  replay: ShownRun | null;
  flows: FlowPiece | null;
  whole: Piece | null; // the whole run in the coarsest bins
  find: (level: number, at_ns: number) => { piece: Piece; bin: number } | null; // of what has come
  want: (level: number, at_ns: number) => void; // asks for what is missing there, and for what comes next
}

export function useReplay(experiment: string, run: string, fail: (why: string) => void): Loaded {
  const [replay, setReplay] = useState<ShownRun | null>(null);
  const [flows, setFlows] = useState<FlowPiece | null>(null);
  const [whole, setWhole] = useState<Piece | null>(null);
  const [, setCame] = useState(0);
  const [missed, setMissed] = useState(0);
  const pieces = useRef(new Map<string, Piece | null>()); // null: asked for
  useEffect(() => {
    let gone = false;
    const why = (error: Error) => !gone && fail(error.message);
    const begin = async () => {
      const found = await replays.about(experiment, run);
      const coarsest = found.levels_ns.length - 1;
      const [first, samples] = await Promise.all([
        coarsest < 0 ? null : replays.piece(experiment, run, coarsest, 0),
        replays.flows(experiment, run),
      ]);
      if (gone) return;
      if (first) pieces.current.set(`${coarsest} 0`, first);
      setReplay(found);
      setWhole(first);
      setFlows(samples);
    };
    begin().catch(why);
    return () => {
      gone = true;
    };
  }, [experiment, run, fail]);

  const ask = useCallback(
    (level: number, piece: number) => {
      const name = `${level} ${piece}`;
      const kept = pieces.current;
      if (kept.has(name)) return;
      kept.set(name, null);
      for (const old of kept.keys()) {
        if (kept.size <= MOST_KEPT) break;
        if (kept.get(old) && old !== name && !old.startsWith(`${(replay?.levels_ns.length ?? 1) - 1} `))
          kept.delete(old);
      }
      replays.piece(experiment, run, level, piece).then(
        (found) => {
          kept.set(name, found);
          setCame((count) => count + 1);
        },
        (error: Error) => {
          setTimeout(() => {
            kept.delete(name);
            setMissed((count) => count + 1);
          }, AGAIN_MS);
          fail(error.message);
        },
      );
    },
    [experiment, run, replay, fail],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was missed is wanted again
  const want = useCallback(
    (level: number, at_ns: number) => {
      if (!replay || replay.levels_ns.length === 0) return;
      const { piece, bin } = placeAt(replay, level, at_ns);
      ask(level, piece);
      if (bin > replay.bins / 2 && piece < placeAt(replay, level, replay.end_ns).piece) ask(level, piece + 1);
    },
    [replay, ask, missed],
  );
  const find = useCallback(
    (level: number, at_ns: number) => {
      if (!replay) return null;
      for (const at of placesFrom(replay, level, at_ns)) {
        const piece = pieces.current.get(`${at.level} ${at.piece}`);
        if (piece) return { piece, bin: at.bin };
      }
      return null;
    },
    [replay],
  );
  return { replay, flows, whole, find, want };
}

/** Where a moment is, in these bins and in coarser ones, which serve until these have come. */
function placesFrom(replay: ShownRun, level: number, at_ns: number): At[] {
  return replay.levels_ns.slice(level).map((_, more) => placeAt(replay, level + more, at_ns));
}
