// A text that is worked on: what it is (or the line that is wrong), and where it is kept. What is not saved survives a reload.

import { useCallback, useEffect, useRef, useState } from "react";
import { api, type RefusedError } from "../api";
import type { FileName, FileText, Refusal } from "../server";

const AFTER_MS = 120;

export interface Kept {
  name: string;
  text: string;
  tag: string | null; // of the text in the directory that this one was made of
  where?: FileName["where"] | null; // whence it was read
}

export interface Document<T> extends Kept {
  found: T | null; // the last one that could be made
  current: boolean; // `found` is of the text as it is here
  refusal: Refusal | null;
  saved: boolean; // the directory has it as it is here
  same: boolean; // the directory or the library has it as it is here
  change: (text: string) => void;
  open: (file: FileName) => Promise<void>;
  fresh: (name: string, text: string) => void;
  save: (name: string) => Promise<FileText>;
}

/** `key`: where the tab keeps it; `describe`: asks the server what it is, and is asked again when it is another function. */
export interface Kind<T> {
  key: string;
  first: { name: string; text: string };
  describe: (now: Kept) => Promise<{ found: T | null; refusal: Refusal | null }>;
}

export function keep(key: string, kept: Kept): void {
  sessionStorage.setItem(key, JSON.stringify(kept));
}

function keptOf(key: string, first: { name: string; text: string }): Kept {
  try {
    const found = JSON.parse(sessionStorage.getItem(key) ?? "") as Kept;
    if (typeof found.name === "string" && typeof found.text === "string") return found;
  } catch {
    // nothing is kept
  }
  return { ...first, tag: null };
}

/** The document of this tab. */
export function useDocument<T>(kind: Kind<T>, fail: (why: string) => void): Document<T> {
  const { key, first, describe } = kind;
  const [now, setNow] = useState<Kept>(() => keptOf(key, first));
  const [found, setFound] = useState<{ made: T; text: string } | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [savedText, setSavedText] = useState<string | null>(null);
  const asked = useRef(0);
  const atFirst = useRef(now);

  useEffect(() => {
    const { name, tag, where } = atFirst.current; // as it was before a reload
    const from = where ?? (tag === null ? null : "here");
    if (from !== null)
      api.read({ name, where: from }).then(
        (file) => setSavedText((old) => old ?? file.text),
        () => undefined, // the file is gone: the text is not saved
      );
  }, []);

  useEffect(() => {
    keep(key, now);
    asked.current += 1;
    const number = asked.current;
    const timer = setTimeout(() => {
      describe(now).then(
        (answer) => {
          if (number !== asked.current) return; // an older text's answer
          setRefusal(answer.refusal);
          if (answer.found) setFound({ made: answer.found, text: now.text });
        },
        (error: RefusedError) => fail(error.message),
      );
    }, AFTER_MS);
    return () => clearTimeout(timer);
  }, [key, now, describe, fail]);

  const change = useCallback((text: string) => setNow((old) => ({ ...old, text })), []);
  const take = useCallback((file: FileText) => {
    const own = file.where === "here";
    setNow({ name: file.name, text: file.text, tag: own ? file.tag : null, where: file.where });
    setSavedText(file.text);
  }, []);
  const open = useCallback(async (file: FileName) => take(await api.read(file)), [take]);
  const fresh = useCallback((name: string, text: string) => {
    setNow({ name, text, tag: null, where: null });
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
  const same = savedText === now.text;
  return {
    ...now,
    found: found?.made ?? null,
    current: refusal === null && found?.text === now.text,
    refusal,
    saved: same && now.tag !== null,
    same,
    change,
    open,
    fresh,
    save,
  };
}
