// Two experiments side by side: what was asked, what their labs were measured to do, what came out, and a figure of both.

import { useEffect, useState } from "react";
import { Copy } from "../common/Copy";
import { hashOf, replace, withQuery } from "../common/route";
import type { Difference, ExperimentComparison, Side } from "../server";
import { results } from "./api";
import { Choices } from "./Choices";
import { useDrawn } from "./drawn";
import { ofOneAlone, usual } from "./line";
import { Picture } from "./Picture";
import { Shown } from "./Tables";

interface Props {
  first: string;
  second: string;
  line: string;
  query: URLSearchParams;
}

export function Beside({ first, second, line, query }: Props) {
  const [found, setFound] = useState<ExperimentComparison | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    results.compared(first, second).then(setFound, (error: Error) => setWrong(error.message));
  }, [first, second]);
  return (
    <section className="whole results" aria-label="Two experiments">
      <div className="row head">
        <a href={hashOf("experiments")} title="all experiments">
          ←
        </a>
        <h2>Side by side</h2>
        {found && (
          <>
            <code>{found.command}</code>
            <Copy text={() => found.command} said="the command is copied" testid="compare-copy">
              Copy command
            </Copy>
          </>
        )}
      </div>
      {wrong && (
        <p className="wrong" role="alert">
          {wrong}
        </p>
      )}
      {found && (
        <>
          <div className="sides">
            {found.sides.map((side, at) => (
              <Head key={at === 0 ? "first" : "second"} side={side} which={at === 0 ? "First" : "Second"} />
            ))}
          </div>
          <Differing title="Parameters" rows={found.parameters} />
          <Results found={found} />
          <Figures found={found} line={line} apart={query.get("apart") === "yes"} />
          <Differing title="Certificates: measured, of what was configured" rows={found.certificates} />
          <Differing title="Labs" rows={found.labs} />
          <Differing title="Versions and circumstances" rows={found.circumstances} />
          {found.scenarios.length > 0 && (
            <>
              <h3>Scenarios</h3>
              <pre className="diff">{found.scenarios.join("\n")}</pre>
            </>
          )}
          <ul className="quiet">
            {found.lines.map((words) => (
              <li key={words}>{words}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Head({ side, which }: { side: Side; which: string }) {
  return (
    <div>
      <h3>{which}</h3>
      <a href={hashOf("experiments", side.name)}>{side.title}</a>{" "}
      <span className={side.status === "complete" ? "up" : "wrong"}>{side.status}</span>
      <div className="quiet">
        {side.clock}, {side.so_far}, {side.started ?? ""}, {side.name}
      </div>
      {side.warnings.map((words) => (
        <p key={words} className="warning">
          {words}
        </p>
      ))}
    </div>
  );
}

function Differing({ title, rows }: { title: string; rows: Difference[] }) {
  if (rows.length === 0) return null;
  return (
    <Shown
      table={{
        title,
        columns: ["what", "first", "second"],
        rows: rows.map((row) => [row.what, row.first, row.second]),
      }}
    />
  );
}

function Results({ found }: { found: ExperimentComparison }) {
  if (found.rows.length === 0) return null;
  const columns = ["where", "metric", "first", "second", "difference", "seeds", "p", "effect", "second has"];
  const rows = found.rows.map((row) => [
    row.point,
    row.metric,
    row.first,
    row.second,
    row.difference,
    row.n,
    row.p,
    row.effect,
    row.outcome,
  ]);
  return <Shown table={{ title: "Results: the difference is the second less the first", columns, rows }} />;
}

/** Together in one figure, on the same axes, or apart, each as it is drawn alone. */
function Figures({ found, line, apart }: { found: ExperimentComparison; line: string; apart: boolean }) {
  const [one, two] = found.sides;
  const wanted = line || usual(one.figures, one.varied, found.metrics);
  const figure = useDrawn(one.name, wanted, "page", apart ? "" : two.name);
  const varied = [...new Set([...(apart ? [] : ["experiment"]), ...one.varied, ...two.varied])];
  const go = (next: string, split: boolean) =>
    replace(
      withQuery(hashOf("experiments", one.name, "beside", two.name, next), { apart: split ? "yes" : "" }),
    );
  return (
    <>
      <h3>A figure of both</h3>
      <div className="plotted">
        <Choices
          line={wanted}
          drawn={figure.drawn}
          experiment={{ varied, values: {}, metrics: [] }}
          onLine={(next) => go(next, apart)}
        >
          {() => (
            <label>
              each alone
              <input
                type="checkbox"
                checked={apart}
                onChange={({ target: { checked } }) => go(checked ? ofOneAlone(wanted) : wanted, checked)}
                data-testid="apart"
              />
            </label>
          )}
        </Choices>
        {apart ? (
          <div>
            <Picture figure={figure} experiment={one.name} style="page" testid="figure-first" />
            <Alone experiment={two.name} line={wanted} testid="figure-second" />
          </div>
        ) : (
          <Picture
            figure={figure}
            experiment={one.name}
            style="page"
            beside={two.name}
            testid="figure-both"
          />
        )}
      </div>
    </>
  );
}

function Alone({ experiment, line, testid }: { experiment: string; line: string; testid: string }) {
  const figure = useDrawn(experiment, line, "page");
  return <Picture figure={figure} experiment={experiment} style="page" testid={testid} />;
}
