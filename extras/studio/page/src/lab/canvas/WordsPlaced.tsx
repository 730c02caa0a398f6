// Puts names and words where there is room, again when the drawing or its zoom has changed.

import { type Node, useStore } from "@xyflow/react";
import { useEffect, useLayoutEffect } from "react";
import type { Drawing } from "../../server";
import { LETTER, LINE, placed, RADIUS } from "./labels";
import { linkWords, type Words } from "./words";

interface Props {
  words: Words;
  nodes: Node[];
  drawing: Drawing | null;
  running: boolean;
  down: Set<string>;
  chosen: Set<string>;
}

const SETTLED_MS = 60;
const BOTTLENECK = " bottleneck".length;
const NOW = 24; // letters of what a link does now

export function WordsPlaced({ words, nodes, drawing, running, down, chosen }: Props) {
  const zoom = useStore((state) => state.transform[2]);
  const element = useStore((state) => state.domNode);
  useLayoutEffect(() => element?.style.setProperty("--zoom", String(zoom)), [element, zoom]);
  useEffect(() => {
    const timer = setTimeout(() => {
      const at = new Map(
        nodes.map((node) => [node.id, { x: node.position.x + RADIUS, y: node.position.y + RADIUS }]),
      );
      const links = drawing?.links ?? [];
      const shown = placed(
        nodes.map((node) => ({
          name: node.id,
          at: { x: node.position.x + RADIUS, y: node.position.y + RADIUS },
          rank: node.data.kind === "host" ? 1 : 0,
          must: chosen.has(node.id),
        })),
        links.flatMap((link) => {
          const [from, to] = [at.get(link.a), at.get(link.b)];
          if (!from || !to || link.role === "plain") return [];
          const { name, text } = linkWords(link);
          const marked = link.bottleneck_of > 0;
          const wide = (letters: number, live = running) => Math.max(letters, live ? NOW : 0) * LETTER + 8;
          const now = running ? LINE : 0;
          return {
            name: link.name,
            from,
            to,
            sizes: [
              {
                form: "line" as const,
                width: wide(name.length + 1 + text.length + (marked ? BOTTLENECK : 0)),
                height: LINE + now,
              },
              ...(name === ""
                ? []
                : [
                    {
                      form: "stacked" as const,
                      width: wide(Math.max(name.length + 2, text.length)),
                      height: 2 * LINE + now,
                    },
                    { form: "name" as const, width: wide(name.length + 2, false), height: LINE },
                  ]),
            ],
            rank: link.bottleneck_of > 0 ? 0 : link.role === "wan" ? 1 : 2,
            must: chosen.has(link.name) || down.has(link.name),
          };
        }),
        zoom,
      );
      words.set(shown);
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [words, nodes, drawing, running, down, chosen, zoom]);
  return null;
}
