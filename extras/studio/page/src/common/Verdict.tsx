// Whether a text runs live on this machine, and what it takes of the virtual clock: said before it is run.

import { useEffect, useRef, useState } from "react";
import { ask } from "../api";
import type { Verdict as Told } from "../server";

const AFTER_MS = 700;

type Word = Told["live"]["verdict"];
interface Props {
  name: string;
  where: "here" | "library";
  text: string;
  scale?: string | null;
  right: boolean; // nothing is wrong with the text
}

const SIGNS: Record<Word, string> = { inside: "✓", outside: "✗", refused: "✗", unknown: "?" };
const LIVE: Record<Word, string> = {
  inside: "runs here",
  outside: "is more than this machine carries",
  refused: "is refused",
  unknown: "is not known",
};

/** Asked for when nobody has typed for a while; never two at once. */
export function Verdict({ name, where, text, scale = null, right }: Props) {
  const [told, setTold] = useState<Told | null>(null);
  const [old, setOld] = useState(true);
  const busy = useRef(false);
  const [turn, setTurn] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `turn` asks again for what was changed meanwhile
  useEffect(() => {
    setOld(true);
    if (!right) return;
    let changed = false;
    const timer = setTimeout(() => {
      if (busy.current) return;
      busy.current = true;
      ask("post", "/api/verdict", { body: { name, where, text, scale } })
        .then(
          (found) => {
            setTold(found);
            setOld(changed);
          },
          () => setTold(null), // the refusal stands beside the text
        )
        .finally(() => {
          busy.current = false;
          if (changed) setTurn((before) => before + 1);
        });
    }, AFTER_MS);
    return () => {
      changed = true;
      clearTimeout(timer);
    };
  }, [name, where, text, scale, right, turn]);
  if (!told || !right) return null;
  const { live, virtual } = told;
  return (
    <dl className={`verdict ${old ? "old" : ""}`} aria-label="Verdict" data-testid="verdict">
      <dt>Live</dt>
      <dd data-testid="verdict-live">
        <b className={`sign ${live.verdict}`}>
          {SIGNS[live.verdict]} {LIVE[live.verdict]}
        </b>
        : {live.why}
      </dd>
      <dt>Virtual</dt>
      <dd data-testid="verdict-virtual">
        {virtual.verdict !== "inside" && (
          <b className={`sign ${virtual.verdict}`}>
            {SIGNS[virtual.verdict]} {LIVE[virtual.verdict]}:{" "}
          </b>
        )}
        {virtual.why}
        {told.looked < told.points && `; ${told.looked} of ${told.points} points were looked at`}
      </dd>
    </dl>
  );
}
