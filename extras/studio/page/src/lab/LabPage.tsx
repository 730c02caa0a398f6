// A lab: its text on the left, its drawing in the middle, what is looked at on the right, a terminal below.

import { ReactFlowProvider } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { isRunning } from "../api";
import { withLayout, without, withValue } from "../common/edit";
import { Editor } from "../common/editor/Editor";
import { hashOf, placeOf, withQuery } from "../common/route";
import { useStudio } from "../common/studio";
import { Verdict } from "../common/Verdict";
import { ArrangeButtons } from "./ArrangeButtons";
import type { Places } from "./canvas/arrange";
import { Canvas } from "./canvas/Canvas";
import { namesOf } from "./canvas/shown";
import { DoneList, useDone } from "./Done";
import { useLabDocument } from "./document";
import { FramesOf, useFrames } from "./frames";
import { hasNode, withLink, withoutLink, withoutNode } from "./graph";
import { LinkPanel } from "./LinkPanel";
import { queryOf, useLooked } from "./looked";
import { Nodes } from "./Nodes";
import { Pairs } from "./Pairs";
import { PathPanel } from "./PathPanel";
import { useOnPath, usePaths } from "./paths";
import { kindOf, Start } from "./Start";
import { TerminalPanel } from "./TerminalPanel";
import { Verification } from "./Verification";
import { Work } from "./Work";
import "./lab.css";

export function LabPage({ shown, asked }: { shown: boolean; asked: string | null }) {
  const { about, view, schema, labs, now, fail, say } = useStudio();
  const [terminal, setTerminal] = useState<string | null>(null);
  const { selected, ends, setSelected, setEnds } = useLooked();
  const document = useLabDocument(fail);
  const { refusal, text } = document;
  const running = labs.find((each) => each.lab === document.drawing?.lab && isRunning(each)) ?? null;
  const linksNow = running?.links;
  // A lab that is up is drawn with what its links do now, which may not be what the text says.
  const drawing = useMemo(() => {
    const links = new Map(linksNow?.map((each) => [each.name, each]));
    const described = document.drawing;
    return described && { ...described, links: described.links.map((each) => links.get(each.name) ?? each) };
  }, [document.drawing, linksNow]);
  const lab = running?.lab ?? null;
  const downNow = running?.down;
  const down = useMemo(() => new Set(downNow), [downNow]);
  const paths = usePaths(
    ends,
    lab,
    document.name,
    text,
    document.drawing?.plan_sha256 ?? "",
    String(downNow),
  );
  const onPath = useOnPath(paths);
  const frames = useFrames(lab);
  const done = useDone(lab);

  const { open: openFile, name, tag } = document;
  const opened = useRef(name);
  opened.current = name;
  const first = asked ?? about?.lab ?? null; // a link that was opened, or --lab
  useEffect(() => {
    if (first !== null && first !== opened.current)
      openFile({ name: first, where: "here" }).catch((error: Error) => fail(error.message));
  }, [first, openFile, fail]);
  useEffect(() => {
    // Somebody may have gone to another page meanwhile.
    if (shown && placeOf(location.hash).page === "lab") {
      const page = tag === null ? hashOf("lab") : hashOf("lab", name);
      history.replaceState(null, "", withQuery(page, queryOf({ selected, ends })));
    }
  }, [shown, name, tag, selected, ends]);
  useEffect(() => {
    if (lab === null) setTerminal(null);
  }, [lab]);

  const save = () => {
    const name = document.tag === null ? prompt("Name of the file", document.name) : document.name;
    if (name)
      document.save(name).then(
        () => {
          say(`${name} is written`);
          now();
        },
        (error: Error) => fail(error.message),
      );
  };
  const move = useCallback(
    (places: Places) => {
      if (view) return;
      let next = text;
      const gone = (node: string) => kindOf(text) === "graph" && !hasNode(text, node);
      for (const [node, at] of places) if (!gone(node)) next = withValue(next, ["layout", node], at);
      document.change(next);
    },
    [document.change, text, view],
  );
  const arrange = (places: Places | null) => {
    if (places === null) document.forgetPlaces();
    document.change(places === null ? without(text, ["layout"]) : withLayout(text, places));
  };
  const drawn = kindOf(text) === "graph" && lab === null && !view;
  const remove = useCallback(() => {
    if (!selected || !drawn) return;
    const names = namesOf(selected);
    document.change(names.reduce(selected.kind === "link" ? withoutLink : withoutNode, text));
    setSelected(null);
  }, [selected, drawn, document.change, text, setSelected]);
  const join = useCallback(
    (a: string, b: string) => {
      if (kindOf(text) !== "graph")
        return fail("a template's links are its own: choose graph to draw by hand");
      if (!view) document.change(withLink(text, a, b));
    },
    [document.change, fail, text, view],
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
  return (
    <div className="lab" hidden={!shown}>
      <div className="left">
        <div className="row title">
          <span data-testid="file">
            {document.name}
            {document.saved ? "" : " •"}
          </span>
          <button type="button" onClick={save} disabled={view} data-testid="save">
            Save
          </button>
          {running && (
            <span className={running.state === "silent" ? "wrong" : "up"} data-testid="state">
              {running.lab} {running.state === "silent" ? "does not answer" : "is up"}
            </span>
          )}
        </div>
        <Start document={document} />
        <Editor text={text} refusal={refusal} schema={schema} onChange={document.change} />
        <p className="wrong" role="alert" data-testid="refusal">
          {refusal ? `line ${refusal.line}: ${refusal.message}` : ""}
        </p>
      </div>
      <main className={document.stale ? "stale" : ""} aria-label="Drawing">
        <FramesOf value={frames}>
          <ReactFlowProvider>
            <Canvas
              drawing={drawing}
              running={lab !== null}
              down={down}
              selected={selected}
              onSelect={setSelected}
              path={onPath}
              onMove={move}
              onJoin={join}
              onOpen={open}
              onRemove={remove}
            >
              <ArrangeButtons drawing={drawing} text={text} onPlaces={arrange} />
            </Canvas>
          </ReactFlowProvider>
        </FramesOf>
        {refusal && (
          <div className="stale-words">
            {document.stale ? "the last drawing that could be made" : "no lab yet"}; line {refusal.line} is
            wrong
          </div>
        )}
      </main>
      <aside>
        <Work document={document} />
        {shown && <Verification lab={document.drawing?.lab ?? null} document={document} />}
        <PathPanel drawing={drawing} ends={ends} paths={paths} live={lab !== null} onEnds={setEnds} />
        {link ? (
          <LinkPanel
            key={link.name}
            link={link}
            document={document}
            lab={lab}
            down={down.has(link.name)}
            done={done}
            course={(name) => frames.course(name)}
            onRemove={drawn ? remove : null}
          />
        ) : (
          <>
            <Nodes
              document={document}
              selected={selected}
              lab={lab}
              onOpen={open}
              onSelect={setSelected}
              onRemove={remove}
            />
            {lab === null && shown && (
              <Verdict name={name} where={document.where ?? "here"} text={text} right={refusal === null} />
            )}
            <Pairs
              drawing={drawing}
              onLink={(name) => setSelected({ kind: "link", name })}
              onPair={({ source, sink }) => setEnds({ source, sink })}
            />
          </>
        )}
        {lab && <DoneList lab={lab} done={done} text={text} />}
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
