// The description that is worked on: its text, what it is (a drawing, or the line that is wrong), and where it is kept.

import { useCallback, useEffect, useRef, useState } from "react";
import { api, type Drawing, type FileText, type Named, type Refusal, type RefusedError } from "../api";

const AFTER_MS = 120;
const KEPT = "ewan-studio-text";

export interface Kept {
  name: string;
  text: string;
  tag: string | null;
}

export interface LabDocument extends Kept {
  drawing: Drawing | null; // the last one that could be drawn
  refusal: Refusal | null;
  saved: boolean;
  change: (text: string) => void;
  open: (file: Named) => Promise<void>;
  fresh: (name: string, text: string) => void;
  save: (name: string) => Promise<FileText>;
}

function kept(): Kept {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEPT) ?? "") as Kept;
    if (typeof found.name === "string" && typeof found.text === "string") return found;
  } catch {
    // nothing is kept
  }
  return { name: "my-lab.lab.yaml", text: "topology: dumbbell\n", tag: null };
}

/** The document of this tab; what is not saved survives a reload. */
export function useLabDocument(fail: (why: string) => void): LabDocument {
  const [now, setNow] = useState<Kept>(kept);
  const [drawing, setDrawing] = useState<Drawing | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [savedText, setSavedText] = useState<string | null>(null);
  const asked = useRef(0);
  const atFirst = useRef(now);

  useEffect(() => {
    const { name, tag } = atFirst.current; // as it was before a reload
    if (tag !== null)
      api.read({ name, where: "here" }).then(
        (file) => setSavedText((old) => old ?? file.text),
        () => undefined, // the file is gone: the text is not saved
      );
  }, []);

  useEffect(() => {
    sessionStorage.setItem(KEPT, JSON.stringify(now));
    asked.current += 1;
    const number = asked.current;
    const timer = setTimeout(() => {
      api.describe(now.name, now.text).then(
        (found) => {
          if (number !== asked.current) return; // an older text's answer
          setRefusal(found.refusal);
          if (found.drawing) setDrawing(found.drawing);
        },
        (error: RefusedError) => fail(error.message),
      );
    }, AFTER_MS);
    return () => clearTimeout(timer);
  }, [now, fail]);

  const change = useCallback((text: string) => setNow((old) => ({ ...old, text })), []);
  const take = useCallback((file: FileText) => {
    const own = file.where === "here";
    setNow({ name: file.name, text: file.text, tag: own ? file.tag : null });
    setSavedText(own ? file.text : null);
  }, []);
  const open = useCallback(async (file: Named) => take(await api.read(file)), [take]);
  const fresh = useCallback((name: string, text: string) => {
    setNow({ name, text, tag: null });
    setSavedText(null);
  }, []);
  const save = useCallback(
    async (name: string) => {
      const written = await api.write(name, now.text, name === now.name ? now.tag : null);
      take(written);
      return written;
    },
    [now, take],
  );
  return { ...now, drawing, refusal, saved: savedText === now.text, change, open, fresh, save };
}
