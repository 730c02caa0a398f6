// What is seen of the drawing: another network is shown whole, and so is one that has other places. What
// changes a little stays where it is.

import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useEffect, useRef } from "react";
import type { Drawing } from "../../api";

export const FIT = { padding: 0.15, maxZoom: 1.25 * Math.max(1, innerHeight / 720) };
const MEASURED_MS = 150; // until nodes are measured

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
    const [left, top, zoom] = transform;
    const places = new Map(drawing.nodes.map((node) => [node.name, `${node.x} ${node.y}`]));
    const changed = drawing.nodes.filter((node) => before.current.get(node.name) !== places.get(node.name));
    const lost = changed.some((node) => {
      const [x, y] = [node.x * zoom + left, node.y * zoom + top];
      return x < 0 || y < 0 || x > width || y > height;
    });
    before.current = places;
    if (!lost && changed.length <= drawing.nodes.length / 2 && shown.current === what) return;
    shown.current = what;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => fitView(FIT), MEASURED_MS);
  }, [drawing, what, store, fitView]);
}
