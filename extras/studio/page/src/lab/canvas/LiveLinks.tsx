// Colour and width of all links of a lab that is up, as full as they are, on one canvas below the drawing: hundreds of lines
// that change twenty times a second are too much for a document's elements.

import { type ReactFlowState, useStoreApi } from "@xyflow/react";
import { useEffect, useRef } from "react";
import type { DrawnLink } from "../../server";
import { type Now, useWatched } from "../frames";
import { RADIUS } from "./labels";

const WIDEST = 9;
const STEPS = 24; // of colour and width: less than that nobody sees

/** How full the fuller direction is, 0 to STEPS; -1 where nobody tells. */
function fill(link: DrawnLink, now: Now): number {
  const ways = [
    [link.forward, now.forward],
    [link.backward, now.backward],
  ] as const;
  const known = ways.flatMap(([way, moment]) => (way && moment ? [moment.rate_bps / way.rate_bps] : []));
  return known.length === 0 ? -1 : Math.round(STEPS * Math.min(1, Math.max(...known)));
}

/** The colours of the steps, as the style sheet's variables are now. */
function colours(place: HTMLElement): string[] {
  const before = place.style.color;
  const found = Array.from({ length: STEPS + 1 }, (_, step) => {
    place.style.color = `color-mix(in oklab, var(--full) ${Math.round((100 * step) / STEPS)}%, var(--idle))`;
    return getComputedStyle(place).color;
  });
  place.style.color = before;
  return found;
}

export function LiveLinks({ links, down }: { links: DrawnLink[]; down: Set<string> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const store = useStoreApi();
  const frames = useWatched();
  useEffect(() => {
    const place = canvas.current;
    const context = place?.getContext("2d");
    if (!place || !context) return;
    let shades = colours(place);
    let asked = 0;
    const draw = () => {
      asked = 0;
      const state = store.getState();
      sized(place, state);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, place.width, place.height);
      const [x, y, zoom] = state.transform;
      const ratio = devicePixelRatio;
      context.setTransform(zoom * ratio, 0, 0, zoom * ratio, x * ratio, y * ratio);
      const steps = Array.from({ length: STEPS + 1 }, () => new Path2D());
      const used = new Set<number>();
      for (const link of links) {
        const step = down.has(link.name) ? -1 : fill(link, frames.now(link.name));
        const from = state.nodeLookup.get(link.a)?.internals.positionAbsolute;
        const to = state.nodeLookup.get(link.b)?.internals.positionAbsolute;
        const path = steps[step];
        if (!path || !from || !to) continue;
        used.add(step);
        path.moveTo(from.x + RADIUS, from.y + RADIUS);
        path.lineTo(to.x + RADIUS, to.y + RADIUS);
      }
      for (const step of used) {
        context.strokeStyle = shades[step] ?? "";
        context.lineWidth = Math.max(2 + (step / STEPS) * WIDEST, 1 / zoom);
        context.stroke(steps[step] as Path2D);
      }
    };
    const soon = () => {
      if (asked === 0) asked = requestAnimationFrame(draw);
    };
    const look = matchMedia("(prefers-color-scheme: dark)");
    const recoloured = () => {
      shades = colours(place);
      soon();
    };
    look.addEventListener("change", recoloured);
    const moved = store.subscribe(soon);
    const told = frames.watchAll(soon);
    soon();
    return () => {
      look.removeEventListener("change", recoloured);
      moved();
      told();
      cancelAnimationFrame(asked);
    };
  }, [links, down, store, frames]);
  return <canvas ref={canvas} className="live-links" />;
}

function sized(place: HTMLCanvasElement, state: ReactFlowState): void {
  const [width, height] = [
    Math.round(state.width * devicePixelRatio),
    Math.round(state.height * devicePixelRatio),
  ];
  if (place.width !== width || place.height !== height) {
    place.width = width;
    place.height = height;
  }
}
