// Values over time, as steps: some lines, marks of what happened, and the moment that is looked at. A click chooses another one.

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { drawDashes } from "./dashes";

export interface ChartLine {
  label: string;
  values: (number | null)[];
  ink: 1 | 2 | 3 | 4; // of style.css
  dashed?: boolean;
}
export interface ChartMark {
  at: number; // s
  words: string;
}
interface Props {
  title: string;
  at: number[]; // s, the begin of each step, and the end of the last
  lines: ChartLine[];
  told: (value: number) => string; // a value in words
  cursor?: number; // s
  marks?: ChartMark[];
  onSeek?: (at: number) => void;
  height?: number;
}

const NONE: ChartMark[] = [];
const LEAST_TOP = 1e-3;
const DASH = [4, 4];
const DOTS: [number, number] = [2, 3];
const DASHED = " (dashed)";

export function Chart({ title, at, lines, told, cursor, marks = NONE, onSeek, height = 110 }: Props) {
  const place = useRef<HTMLElement>(null);
  const drawn = useRef<{ plot: uPlot; line: HTMLElement } | null>(null);
  const now = useRef({ told, marks, onSeek, cursor });
  now.current = { told, marks, onSeek, cursor };
  const looks = lines.map(({ label, dashed }) => `${label}${dashed ? DASHED : ""}`).join("\n");

  useEffect(() => {
    const around = place.current;
    const canvas = around?.querySelector<HTMLElement>(".chart-canvas");
    if (!around || !canvas) return;
    const line = document.createElement("div");
    line.className = "chart-now";
    const ink = getComputedStyle(around).color;
    const axis = { stroke: ink, grid: { stroke: "#8883", width: 1 }, ticks: { stroke: "#8883", width: 1 } };
    const inks = [...around.querySelectorAll("i")].map((each) => getComputedStyle(each).color);
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    const plot = new uPlot(
      {
        width: canvas.clientWidth,
        height,
        cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
        legend: { show: false },
        scales: {
          x: { time: false },
          y: { range: (_, __, most) => [0, Math.max((most ?? 0) * 1.1, LEAST_TOP)] },
        },
        axes: [
          { ...axis, size: 30, values: (_, ticks) => ticks.map((tick) => `${tick}s`) },
          { ...axis, size: 66, values: (_, ticks) => ticks.map((tick) => now.current.told(tick)) },
        ],
        series: [
          {},
          ...looks.split("\n").map((label, number) => ({
            label,
            stroke: inks[number] ?? ink,
            width: 1.5,
            points: { show: false },
            ...(label.endsWith(DASHED) ? { dash: DASH } : {}),
            ...(stepped ? { paths: stepped } : {}),
          })),
        ],
        hooks: {
          draw: [
            (drawing) => {
              drawDashes(
                drawing,
                now.current.marks.map((mark) => mark.at),
                ink,
                DOTS,
              );
              showCursor(drawing, line, now.current.cursor);
            },
          ],
        },
      },
      undefined,
      canvas,
    );
    plot.over.append(line);
    const click = () => {
      const left = plot.cursor.left ?? -1;
      if (left >= 0) now.current.onSeek?.(plot.posToVal(left, "x"));
    };
    plot.over.addEventListener("click", click);
    drawn.current = { plot, line };
    const sized = new ResizeObserver(() => plot.setSize({ width: canvas.clientWidth, height }));
    sized.observe(canvas);
    return () => {
      sized.disconnect();
      drawn.current = null;
      plot.destroy();
    };
  }, [looks, height]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a plot that was made anew has no data, others' marks are drawn
  useEffect(() => {
    const { plot } = drawn.current ?? {};
    const held = (values: (number | null)[]) => [...values, values.at(-1) ?? null]; // the last step has a length, too
    plot?.setData([at, ...lines.map((line) => held(line.values))] as uPlot.AlignedData);
  }, [at, lines, marks, looks, height]);

  useEffect(() => {
    const { plot, line } = drawn.current ?? {};
    if (plot && line) showCursor(plot, line, cursor);
  });

  return (
    <figure className="chart" ref={place}>
      <figcaption>
        {title}
        {lines.length > 1 &&
          lines.map(({ label, ink, dashed }) => (
            <span key={label}>
              <i className={`ink-${ink}${dashed ? " dashed" : ""}`} aria-hidden="true" />
              {label}
            </span>
          ))}
        {lines.length === 1 && <i className={`ink-${lines[0]?.ink}`} hidden />}
      </figcaption>
      <div className="chart-canvas" role="img" aria-label={`${title} over time`} />
    </figure>
  );
}

function showCursor(plot: uPlot, line: HTMLElement, cursor: number | undefined): void {
  const { min, max } = plot.scales.x ?? {};
  const inside = cursor !== undefined && typeof min === "number" && typeof max === "number";
  line.hidden = !inside || cursor < min || cursor > max;
  if (!line.hidden) line.style.transform = `translateX(${plot.valToPos(cursor ?? 0, "x")}px)`;
}
