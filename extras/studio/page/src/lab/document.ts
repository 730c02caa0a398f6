// The description that is worked on, and its drawing.

import { useCallback, useMemo, useState } from "react";
import { api } from "../api";
import { type Document, type Kind, useDocument } from "../common/document";
import type { Drawing } from "../server";
import { Standing, unfinished } from "./places";

const KIND: Kind<Drawing> = {
  key: "ewan-studio-text",
  first: { name: "my-lab.lab.yaml", text: "topology: dumbbell\n" },
  describe: async ({ name, text }) => {
    const { drawing, refusal } = await api.describe(name, text);
    return { found: drawing, refusal };
  },
};

export interface LabDocument extends Document<Drawing> {
  drawing: Drawing | null; // of the text, also of a graph that is no lab yet; else the last one that could be drawn
  stale: boolean; // it is not of the text
  forgetPlaces: () => void;
}

export function useLabDocument(fail: (why: string) => void): LabDocument {
  const document = useDocument(KIND, fail);
  const [standing] = useState(() => new Standing());
  const { name, text, found, current, refusal } = document;
  const [drawing, stale] = useMemo(() => {
    const graph = refusal && unfinished(text, found);
    const drawn = graph ?? found;
    return [drawn && standing.placed(drawn, text, name, current), refusal !== null && graph === null];
  }, [standing, name, text, found, current, refusal]);
  const forgetPlaces = useCallback(() => standing.forget(), [standing]);
  return { ...document, drawing, stale, forgetPlaces };
}
