// A figure that the server draws, asked for anew when its line changes; a later answer is never replaced by an earlier.

import { useEffect, useRef, useState } from "react";
import type { DrawnFigure } from "../server";
import { results, type Style } from "./api";

export interface Figure {
  drawn: DrawnFigure | null; // the last one that could be drawn
  wrong: string;
  busy: boolean;
}

export function useDrawn(experiment: string, line: string, style: Style, beside = ""): Figure {
  const [figure, setFigure] = useState<Figure>({ drawn: null, wrong: "", busy: true });
  const asked = useRef(0);
  useEffect(() => {
    asked.current += 1;
    const mine = asked.current;
    const current = () => mine === asked.current;
    setFigure((old) => ({ ...old, busy: true }));
    results.figure(experiment, line, { style, ...(beside ? { beside } : {}) }).then(
      (drawn) => current() && setFigure({ drawn, wrong: "", busy: false }),
      (error: Error) => current() && setFigure((old) => ({ ...old, wrong: error.message, busy: false })),
    );
  }, [experiment, line, style, beside]);
  return figure;
}
