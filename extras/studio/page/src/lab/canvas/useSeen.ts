// What is seen of the drawing: another network is shown whole, and so is one that has other places, or that was seen whole
// until its room shrank, as when a terminal opens. What changes a little stays where it is.

import { useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { useEffect, useRef } from "react";
import type { Drawing } from "../../server";
import { LINE, RADIUS } from "./labels";

export const FIT = { padding: 0.15, maxZoom: 1.25 * Math.max(1, innerHeight / 720) };
const MEASURED_MS = 150; // until nodes are measured

interface Size {
  width: number;
  height: number;
}

/** Whether a place of the drawing is seen in a room of this size. */
function isSeen(
  { x, y }: { x: number; y: number },
  [left, top, zoom]: [number, number, number],
  { width, height }: Size,
): boolean {
  const [across, down] = [x * zoom + left, y * zoom + top];
  return across >= 0 && down >= 0 && across <= width && down <= height;
}

export function useSeen(drawing: Drawing | null): void {
  const { fitView } = useReactFlow();
  const store = useStoreApi();
  const before = useRef(new Map<string, string>());
  const what = `${drawing?.lab} ${drawing?.topology}`;
  const shown = useRef("");
  const timer = useRef(0); // a drawing that comes meanwhile, as when a lab is found to be up, does not stop it
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!drawing) return;
    const { transform, width, height } = store.getState();
    const places = new Map(drawing.nodes.map((node) => [node.name, `${node.x} ${node.y}`]));
    const changed = drawing.nodes.filter((node) => before.current.get(node.name) !== places.get(node.name));
    const lost = changed.some((node) => !isSeen(node, transform, { width, height }));
    before.current = places;
    if (!lost && changed.length <= drawing.nodes.length / 2 && shown.current === what) return;
    shown.current = what;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => fitView(FIT), MEASURED_MS);
  }, [drawing, what, store, fitView]);

  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const room = useRef<Size>({ width, height });
  useEffect(() => {
    const was = room.current;
    room.current = { width, height };
    if (!drawing || (was.width === width && was.height === height)) return;
    const { transform } = store.getState();
    const corners = drawing.nodes.flatMap(({ x, y }) => [
      { x, y },
      { x: x + 2 * RADIUS, y: y + 2 * RADIUS + LINE }, // its name is below
    ]);
    const whole = (size: Size) => corners.every((corner) => isSeen(corner, transform, size));
    if (whole(was) && !whole(room.current)) fitView(FIT);
  }, [drawing, width, height, store, fitView]);
}
