// An answer of the server that is asked for again and again.

import { useCallback, useEffect, useRef, useState } from "react";
import type { RefusedError } from "../api";

const EVERY_MS = 1000;

/** State that takes an answer only where it is another one: React keeps each one that it is given, the same one too,
 * until it draws anew, which may be never. */
export function useAnswer<T>(first: T): [T, (answer: T) => void] {
  const [found, setFound] = useState(first);
  const text = useRef(JSON.stringify(first));
  const take = useCallback((answer: T) => {
    const now = JSON.stringify(answer);
    if (now === text.current) return;
    text.current = now;
    setFound(answer);
  }, []);
  return [found, take];
}

/** An answer that does not come is told once, and one that is as before changes nothing. The second of what it gives
 * asks at once, and ends when the answer is there. */
export function useAsked<T>(
  ask: () => Promise<T>,
  first: T,
  fail: (why: string) => void,
): [T, () => Promise<void>] {
  const [found, take] = useAnswer(first);
  const silent = useRef(false);
  const now = useCallback(() => {
    return ask().then(
      (answer) => {
        silent.current = false;
        take(answer);
      },
      (error: RefusedError) => {
        if (!silent.current) fail(error.message);
        silent.current = true;
      },
    );
  }, [ask, take, fail]);
  useEffect(() => {
    now();
    const timer = setInterval(now, EVERY_MS);
    return () => clearInterval(timer);
  }, [now]);
  return [found, now];
}
