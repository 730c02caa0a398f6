// The page: text on the left, drawing in the middle, what is looked at on the right, a terminal below.

import { ReactFlowProvider } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { type About, api, type Named } from "./api";
import { Canvas, type Selected } from "./canvas/Canvas";
import { useLabDocument } from "./document";
import { withAppended, withValue } from "./edit";
import { Editor } from "./editor/Editor";
import type { Schema } from "./editor/words";
import { useExperiments, useFrames, useJobs, useLabs } from "./live";
import { LinkPanel } from "./panels/LinkPanel";
import { Nodes } from "./panels/Nodes";
import { Pairs } from "./panels/Pairs";
import { Results } from "./panels/Results";
import { kindOf, Start } from "./panels/Start";
import { TerminalPanel } from "./panels/TerminalPanel";
import { Work } from "./panels/Work";

const TOLD_MS = 8000;

export function App() {
  const [about, setAbout] = useState<About | null>(null);
  const [schema, setSchema] = useState<Schema | null>(null);
  const [files, setFiles] = useState<Named[]>([]);
  const [selected, setSelected] = useState<Selected>(null);
  const [terminal, setTerminal] = useState<string | null>(null);
  const [down, setDown] = useState<Set<string>>(new Set());
  const [told, setTold] = useState<{ text: string; wrong: boolean } | null>(null);
  const fail = useCallback((text: string) => setTold({ text, wrong: true }), []);
  const say = useCallback((text: string) => setTold({ text, wrong: false }), []);
  const document = useLabDocument(fail);
  const [labs, labsNow] = useLabs(fail);
  const [jobs, jobsNow] = useJobs(fail);
  const [tab, setTab] = useState<"lab" | "experiments">("lab");
  const [experiments] = useExperiments(fail, tab === "experiments");
  const { refusal, text } = document;
  const running =
    labs.find((each) => each.lab === document.drawing?.lab && each.state === "complete") ?? null;
  const linksNow = running?.links;
  // A lab that is up is drawn with what its links do now, which may not be what the text says.
  const drawing = useMemo(() => {
    const links = new Map(linksNow?.map((each) => [each.name, each]));
    const described = document.drawing;
    return described && { ...described, links: described.links.map((each) => links.get(each.name) ?? each) };
  }, [document.drawing, linksNow]);
  const lab = running?.lab ?? null;
  const { moments, courses } = useFrames(lab);

  const first = document.open;
  useEffect(() => {
    const why = (error: Error) => fail(error.message);
    api.about().then((found) => {
      setAbout(found);
      if (found.lab) first({ name: found.lab, where: "here" }).catch(why);
    }, why);
    api.schema().then((found) => setSchema(found as Schema), why);
    api.files().then(setFiles, why);
  }, [first, fail]);
  useEffect(() => {
    if (!told) return;
    const timer = setTimeout(() => setTold(null), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);
  useEffect(() => {
    if (lab === null) {
      setTerminal(null);
      setDown(new Set());
    }
  }, [lab]);

  const save = () => {
    const name = document.tag === null ? prompt("Name of the file", document.name) : document.name;
    if (name)
      document.save(name).then(
        () => {
          say(`${name} is written`);
          api.files().then(setFiles, (error: Error) => fail(error.message));
        },
        (error: Error) => fail(error.message),
      );
  };
  const move = useCallback(
    (node: string, x: number, y: number) =>
      document.change(withValue(text, ["layout", node], [Math.round(x), Math.round(y)])),
    [document.change, text],
  );
  const join = useCallback(
    (a: string, b: string) => {
      if (kindOf(text) !== "graph")
        return fail("a template's links are its own: choose graph to draw by hand");
      document.change(withAppended(text, ["topology", "graph", "links"], { between: [a, b] }));
    },
    [document.change, fail, text],
  );
  const open = useCallback(
    (node: string) => (lab ? setTerminal(node) : fail(`bring the lab up first: ${node} has no shell yet`)),
    [lab, fail],
  );
  const link = useMemo(
    () =>
      selected?.kind === "link" ? (drawing?.links.find((each) => each.name === selected.name) ?? null) : null,
    [drawing, selected],
  );
  const view = about?.view ?? true;
  const now = () => {
    jobsNow();
    labsNow();
  };

  return (
    <div className="page">
      <header>
        <h1>ewan studio</h1>
        <span data-testid="file">
          {document.name}
          {document.saved ? "" : " •"}
        </span>
        <button type="button" onClick={save} disabled={view || refusal !== null} data-testid="save">
          Save
        </button>
        {lab && <span className="up">{lab} is up</span>}
        {view && <span className="up">view only</span>}
        <output className={told?.wrong ? "wrong" : ""} data-testid="told">
          {told?.text ?? ""}
        </output>
      </header>
      <div className="left">
        <Start about={about} files={files} document={document} fail={fail} />
        <Editor text={text} refusal={refusal} schema={schema} onChange={document.change} />
        <p className="wrong" role="alert" data-testid="refusal">
          {refusal ? `line ${refusal.line}: ${refusal.message}` : ""}
        </p>
      </div>
      <main className={refusal ? "stale" : ""} aria-label="Drawing">
        <ReactFlowProvider>
          <Canvas
            drawing={drawing}
            moments={moments}
            down={down}
            selected={selected}
            onSelect={setSelected}
            onMove={move}
            onJoin={join}
            onOpen={open}
          />
        </ReactFlowProvider>
        {refusal && (
          <div className="stale-words">the last drawing that could be made; line {refusal.line} is wrong</div>
        )}
      </main>
      <aside>
        <Work document={document} labs={labs} jobs={jobs} view={view} now={now} fail={fail} />
        <div className="row tabs" role="tablist">
          {(["lab", "experiments"] as const).map((each) => (
            <button
              key={each}
              type="button"
              role="tab"
              aria-selected={tab === each}
              onClick={() => setTab(each)}
              data-testid={`tab-${each}`}
            >
              {each === "lab" ? "Lab" : "Experiments"}
            </button>
          ))}
        </div>
        {tab === "experiments" ? (
          <Results files={files} experiments={experiments} jobs={jobs} view={view} now={now} fail={fail} />
        ) : link ? (
          <LinkPanel
            key={link.name}
            link={link}
            document={document}
            lab={lab}
            down={down.has(link.name)}
            view={view}
            course={(name) => courses.get(name)}
            onDown={(name, is) =>
              setDown((old) => {
                const next = new Set(old);
                if (is) next.add(name);
                else next.delete(name);
                return next;
              })
            }
            fail={fail}
            say={say}
          />
        ) : (
          <>
            <Nodes document={document} selected={selected} lab={lab} view={view} onOpen={open} fail={fail} />
            <Pairs drawing={drawing} onLink={(name) => setSelected({ kind: "link", name })} />
          </>
        )}
      </aside>
      {terminal && lab && (
        <section className="foot" aria-label={`Terminal of ${terminal}`}>
          <div className="row">
            <b>{terminal}</b>
            <button type="button" onClick={() => setTerminal(null)}>
              Close
            </button>
          </div>
          <TerminalPanel key={terminal} lab={lab} node={terminal} />
        </section>
      )}
    </div>
  );
}
