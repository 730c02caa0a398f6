// What every page of Studio shares: what the server told at the start, files, labs that are up, jobs, and one line to the person.

import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { api } from "../api";
import type { About, FileName, Job, Up } from "../server";
import { useAsked } from "./asked";
import type { Schema } from "./editor/words";

const TOLD_MS = 8000;

export interface Told {
  text: string;
  wrong: boolean;
}

export interface Studio {
  about: About | null; // null until the server has answered
  view: boolean; // shows and changes nothing
  schema: Schema | null; // of descriptions
  files: FileName[];
  labs: Up[];
  jobs: Job[];
  told: Told | null;
  now: () => Promise<unknown>; // asks for labs, jobs and files again, at once; ends when they are there
  fail: (why: string) => void;
  say: (what: string) => void;
}

const Shared = createContext<Studio | null>(null);

export function useStudio(): Studio {
  const found = useContext(Shared);
  if (!found) throw new Error("useStudio: outside of StudioState");
  return found;
}

export function StudioState({ children }: { children: ReactNode }) {
  const [about, setAbout] = useState<About | null>(null);
  const [schema, setSchema] = useState<Schema | null>(null);
  const [files, setFiles] = useState<FileName[]>([]);
  const [told, setTold] = useState<Told | null>(null);
  const fail = useCallback((text: string) => setTold({ text, wrong: true }), []);
  const say = useCallback((text: string) => setTold({ text, wrong: false }), []);
  const [labs, labsNow] = useAsked<Up[]>(api.live, [], fail);
  const [jobs, jobsNow] = useAsked<Job[]>(api.jobs, [], fail);
  const filesNow = useCallback(
    () => api.files().then(setFiles, (error: Error) => fail(error.message)),
    [fail],
  );
  useEffect(() => {
    const why = (error: Error) => fail(error.message);
    api.about().then(setAbout, why);
    api.schema().then((found) => setSchema(found as Schema), why);
    filesNow();
  }, [fail, filesNow]);
  useEffect(() => {
    if (!told) return;
    const timer = setTimeout(() => setTold(null), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);
  const now = useCallback(() => {
    return Promise.all([jobsNow(), labsNow(), filesNow()]);
  }, [jobsNow, labsNow, filesNow]);
  const value = useMemo<Studio>(
    () => ({ about, view: about?.view ?? true, schema, files, labs, jobs, told, now, fail, say }),
    [about, schema, files, labs, jobs, told, now, fail, say],
  );
  return <Shared.Provider value={value}>{children}</Shared.Provider>;
}
