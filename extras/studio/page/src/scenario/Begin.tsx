// Where one begins: a new scenario, or one of the directory or the library; and how it is run.

import { api } from "../api";
import { useStudio } from "../common/studio";
import type { FileName } from "../server";
import { BEGINNING, FRESH, type ScenarioDocument } from "./document";

interface Props {
  document: ScenarioDocument;
  scales: string[];
  scale: string | null;
  virtual: boolean;
  onScale: (scale: string | null) => void;
  onVirtual: (virtual: boolean) => void;
}

export function Begin({ document, scales, scale, virtual, onScale, onVirtual }: Props) {
  const { files, view, now, fail, say } = useStudio();
  const scenarios = files.filter((file) => file.name.endsWith(".scenario.yaml"));
  const goOn = () =>
    document.same || document.text === BEGINNING || confirm("What is not saved is lost. Go on?");
  const open = (file: FileName | undefined) => {
    if (file && goOn()) document.open(file).catch((error: Error) => fail(error.message));
  };
  const save = async () => {
    const name = document.tag === null ? prompt("Name of the file", document.name) : document.name;
    if (!name) return;
    await document.save(name);
    say(`${name} is written`);
    now();
  };
  const run = async () => {
    if (!document.same) await document.save(document.name);
    const where = document.same ? (document.where ?? "here") : "here";
    await api.begin("run", document.name, {
      where,
      runtime: virtual ? "virtual" : "auto",
      ...(scale === null ? {} : { scale }),
    });
    now();
  };
  const told = (work: () => Promise<void>) => () => {
    work().catch((error: Error) => fail(error.message));
  };
  const wrong = document.refusal !== null;
  return (
    <>
      <div className="row title">
        <span data-testid="scenario-file">
          {document.name}
          {document.same ? "" : " •"}
        </span>
        <button type="button" onClick={told(save)} disabled={view} data-testid="save-scenario">
          Save
        </button>
        <button
          type="button"
          disabled={view}
          onClick={() => goOn() && document.fresh(FRESH, BEGINNING)}
          data-testid="new-scenario"
        >
          New
        </button>
      </div>
      <div className="row title">
        <select
          aria-label="Open a scenario"
          value=""
          onChange={(event) =>
            open(scenarios.find((each) => `${each.where}/${each.name}` === event.target.value))
          }
          data-testid="scenario"
        >
          <option value="">Open …</option>
          {scenarios.map((file) => (
            <option key={`${file.where}/${file.name}`} value={`${file.where}/${file.name}`}>
              {file.where === "library" ? "library: " : ""}
              {file.name.replace(".scenario.yaml", "")}
            </option>
          ))}
        </select>
        <select
          aria-label="Clock"
          value={virtual ? "virtual" : "live"}
          onChange={(event) => onVirtual(event.target.value === "virtual")}
          data-testid="clock"
        >
          <option value="virtual">virtual clock</option>
          <option value="live">live</option>
        </select>
        {scales.length > 0 && (
          <select
            aria-label="Scale"
            value={scale ?? ""}
            onChange={(event) => onScale(event.target.value || null)}
            data-testid="scale"
          >
            <option value="">full length</option>
            {scales.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        )}
        <button type="button" disabled={view || wrong} onClick={told(run)} data-testid="run">
          Run
        </button>
      </div>
    </>
  );
}
