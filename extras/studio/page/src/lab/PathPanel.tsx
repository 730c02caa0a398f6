// The way between two hosts, in words; the drawing has it in colour.

import type { Drawing, Paths, RoutedPath } from "../server";
import type { Ends } from "./paths";

interface Props {
  drawing: Drawing | null;
  ends: Ends | null;
  paths: Paths | null;
  live: boolean;
  onEnds: (ends: Ends | null) => void;
}

export function PathPanel({ drawing, ends, paths, live, onEnds }: Props) {
  const hosts = drawing?.nodes.filter((node) => node.kind === "host").map((node) => node.name) ?? [];
  const pick = (key: keyof Ends, name: string) => {
    const other = hosts.find((each) => each !== name) ?? "";
    const next = { source: ends?.source ?? other, sink: ends?.sink ?? other, [key]: name };
    onEnds(name === "" || next.source === next.sink ? null : next);
  };
  return (
    <fieldset data-testid="path">
      <legend>Path {live ? "now" : "by the plan"}</legend>
      <div className="row">
        {(["source", "sink"] as const).map((key) => (
          <select
            key={key}
            aria-label={key === "source" ? "path from" : "path to"}
            value={ends?.[key] ?? ""}
            onChange={(event) => pick(key, event.target.value)}
            data-testid={`path-${key}`}
          >
            <option value="">{key === "source" ? "from …" : "to …"}</option>
            {hosts.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        ))}
        {ends && (
          <button type="button" onClick={() => onEnds(null)}>
            Clear
          </button>
        )}
      </div>
      {ends && paths && (
        <>
          <Told way={paths.there} from={ends.source} name="there" />
          <Told way={paths.back} from={ends.sink} name="back" />
        </>
      )}
    </fieldset>
  );
}

function Told({ way, from, name }: { way: RoutedPath; from: string; name: string }) {
  return (
    <p data-testid={`path-${name}`}>
      <span className={`mark ${name}`}>{name}</span>{" "}
      {way.broken ? (
        <span className="wrong">{way.broken}</span>
      ) : (
        [from, ...way.steps.map((step) => `${step.link} → ${step.b}`)].join(" → ")
      )}
    </p>
  );
}
