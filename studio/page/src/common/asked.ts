// An answer of the server that is asked for again and again.

import { useCallback, useEffect, useRef, useState } from "react";
import type { RefusedError } from "../api";

const EVERY_MS = 1000;

/** An answer that does not come is told once, and one that is as before changes nothing. The second of what it gives
 * asks at once, and ends when the answer is there. */
export function useAsked<T>(
  ask: () => Promise<T>,
  first: T,
  fail: (why: string) => void,
): [T, () => Promise<void>] {
  const [found, setFound] = useState(first);
  const silent = useRef(false);
  const now = useCallback(() => {
    return ask().then(
      (answer) => {
        silent.current = false;
        setFound((old) => (JSON.stringify(old) === JSON.stringify(answer) ? old : answer));
      },
      (error: RefusedError) => {
        if (!silent.current) fail(error.message);
        silent.current = true;
      },
    );
  }, [ask, fail]);
  useEffect(() => {
    now();
    const timer = setInterval(now, EVERY_MS);
    return () => clearInterval(timer);
  }, [now]);
  return [found, now];
}
