// The description that is worked on, and its drawing.

import { api, type Drawing } from "../api";
import { type Document, type Kind, useDocument } from "../common/document";

const KIND: Kind<Drawing> = {
  key: "ewan-studio-text",
  first: { name: "my-lab.lab.yaml", text: "topology: dumbbell\n" },
  describe: async ({ name, text }) => {
    const { drawing, refusal } = await api.describe(name, text);
    return { found: drawing, refusal };
  },
};

export interface LabDocument extends Document<Drawing> {
  drawing: Drawing | null; // the last one that could be drawn
}

export function useLabDocument(fail: (why: string) => void): LabDocument {
  const document = useDocument(KIND, fail);
  return { ...document, drawing: document.found };
}
