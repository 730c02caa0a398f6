// A course over the last seconds, drawn ten times a second while it is seen.

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { drawDashes } from "../common/dashes";
import type { Course } from "./frames";

interface Props {
  title: string;
  course: () => Course | undefined;
  column: Exclude<keyof Course, "at">;
  colour: string;
  marks?: () => number[]; // UNIX times in s, at which something was changed
}

const EVERY_MS = 100;
const HEIGHT = 120;
const DASH: [number, number] = [4, 3];

export function Plot({ title, course, column, colour, marks }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const ask = useRef(course);
  ask.current = course;
  const marked = useRef(marks);
  marked.current = marks;
  useEffect(() => {
    const around = place.current;
    if (!around) return;
    const ink = getComputedStyle(around).color;
    const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884", width: 1 } };
    const plot = new uPlot(
      {
        title,
        width: around.clientWidth,
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1e-3)] } },
        axes: [axis, { ...axis, size: 56 }],
        hooks: { draw: [(drawn) => drawDashes(drawn, marked.current?.() ?? [], ink, DASH)] },
        series: [{}, { stroke: colour, width: 1.5, points: { show: false } }],
      },
      [[], []],
      around,
    );
    const timer = setInterval(() => {
      const now = ask.current();
      if (now && !document.hidden) plot.setData([now.at, now[column]]);
    }, EVERY_MS);
    const sized = new ResizeObserver(() => plot.setSize({ width: around.clientWidth, height: HEIGHT }));
    sized.observe(around);
    return () => {
      clearInterval(timer);
      sized.disconnect();
      plot.destroy();
    };
  }, [title, column, colour]);
  return <div className="plot" ref={place} />;
}
