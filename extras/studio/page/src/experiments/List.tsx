// All experiments: found by text, tag, status and clock, sorted; two may be chosen to be put side by side.

import { useState } from "react";
import { useAsked } from "../common/asked";
import { hashOf, replace, withQuery } from "../common/route";
import { useStudio } from "../common/studio";
import { ReplayLinks } from "../replay/ReplayLinks";
import type { ExperimentRow } from "../server";
import { nameOf, results } from "./api";
import { filtered, queryOf, SORTS, type Sort, tagsOf, titleOf, type Wanted, wantedOf } from "./filter";

const HEADS: { sort: Sort | null; head: string }[] = [
  { sort: "name", head: "experiment" },
  { sort: "began", head: "begun (UTC)" },
  { sort: "runs", head: "runs" },
  { sort: "status", head: "status" },
  { sort: null, head: "result" },
];

export function List({ query }: { query: URLSearchParams }) {
  const { fail } = useStudio();
  const [rows] = useAsked<ExperimentRow[] | null>(results.every, null, fail);
  const [chosen, setChosen] = useState<string[]>([]);
  const wanted = wantedOf(query);
  const want = (more: Partial<Wanted>) =>
    replace(withQuery(hashOf("experiments"), queryOf({ ...wanted, ...more })));
  if (rows === null) return <section className="whole" aria-label="Experiments" />;
  const shown = filtered(rows, wanted);
  const choose = (name: string, on: boolean) =>
    setChosen((old) => [...old.filter((each) => each !== name), ...(on ? [name] : [])].slice(-2));
  return (
    <section className="whole results" aria-label="Experiments">
      <Filters rows={rows} wanted={wanted} want={want} />
      <div className="row">
        <span className="quiet" data-testid="found">
          {shown.length} of {rows.length} experiments
        </span>
        <Beside chosen={chosen} />
      </div>
      <table>
        <thead>
          <tr>
            <th>
              <span className="hidden">side by side</span>
            </th>
            {HEADS.map(({ sort, head }) => (
              <th
                key={head}
                aria-sort={wanted.sort === sort ? (wanted.up ? "ascending" : "descending") : undefined}
              >
                {sort === null ? (
                  head
                ) : (
                  <button
                    type="button"
                    className="text"
                    title={`sort by ${SORTS[sort]}`}
                    onClick={() => want({ sort, up: wanted.sort === sort && !wanted.up })}
                  >
                    {head}
                    {wanted.sort === sort ? (wanted.up ? " ▴" : " ▾") : ""}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Line
              key={row.directory}
              row={row}
              chosen={chosen.includes(nameOf(row))}
              choose={choose}
              byTag={(tag) => want({ tag })}
            />
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p className="quiet">There are no experiments here yet: run a scenario.</p>}
    </section>
  );
}

function Beside({ chosen }: { chosen: string[] }) {
  const [first, second] = [...chosen].sort();
  if (!first || !second) return <span className="quiet">Mark two to see them side by side.</span>;
  return (
    <a className="button" href={hashOf("experiments", first, "beside", second)} data-testid="side-by-side">
      Side by side
    </a>
  );
}

interface FiltersProps {
  rows: ExperimentRow[];
  wanted: Wanted;
  want: (more: Partial<Wanted>) => void;
}

function Filters({ rows, wanted, want }: FiltersProps) {
  const statuses = [...new Set(rows.map((row) => row.status))].sort();
  const choices: { key: "tag" | "status" | "clock"; of: string[] }[] = [
    { key: "tag", of: tagsOf(rows) },
    { key: "status", of: statuses },
    { key: "clock", of: ["live", "virtual"] },
  ];
  return (
    <search className="row filters">
      <label>
        Search
        <input
          type="search"
          value={wanted.text}
          placeholder="name, scenario, note, result"
          onChange={(event) => want({ text: event.target.value })}
          data-testid="search"
        />
      </label>
      {choices.map(({ key, of }) => (
        <label key={key}>
          {key}
          <select
            value={wanted[key]}
            onChange={(event) => want({ [key]: event.target.value })}
            data-testid={`by-${key}`}
          >
            <option value="">any</option>
            {[...new Set([...of, ...(wanted[key] ? [wanted[key]] : [])])].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      ))}
    </search>
  );
}

interface LineProps {
  row: ExperimentRow;
  chosen: boolean;
  choose: (name: string, on: boolean) => void;
  byTag: (tag: string) => void;
}

function Line({ row, chosen, choose, byTag }: LineProps) {
  const name = nameOf(row);
  return (
    <tr data-testid={`experiment-${name}`}>
      <td>
        <input
          type="checkbox"
          checked={chosen}
          onChange={(event) => choose(name, event.target.checked)}
          aria-label={`side by side: ${titleOf(row)} ${name}`}
        />
      </td>
      <td>
        <a href={hashOf("experiments", name)}>{titleOf(row)}</a>{" "}
        {row.tags.map((tag) => (
          <button
            key={tag}
            type="button"
            className="tag"
            title={`those with the tag ${tag}`}
            onClick={() => byTag(tag)}
          >
            {tag}
          </button>
        ))}
        <div className="quiet">
          {row.name && row.scenario ? `${row.scenario} · ` : ""}
          {name}
          {row.note && <span className="note"> · {row.note}</span>}
        </div>
      </td>
      <td className="number">{row.began.slice(0, 16).replace("T", " ")}</td>
      <td className="number">
        {row.runs}
        {row.status !== "not readable" && <ReplayLinks experiment={name} />}
      </td>
      <td>
        <Status row={row} />
      </td>
      <td>{row.result}</td>
    </tr>
  );
}

const VERIFIED: Record<string, string> = { yes: "verified", no: "NOT verified" };

function Status({ row }: { row: ExperimentRow }) {
  const about = [
    row.clock,
    VERIFIED[row.verified] ?? "",
    row.disturbed > "0" ? `${row.disturbed} disturbed` : "",
  ];
  return (
    <>
      <span className={row.status === "complete" ? "up" : "wrong"}>{row.status}</span>
      <div className={row.verified === "no" ? "wrong" : "quiet"}>{about.filter(Boolean).join(", ")}</div>
    </>
  );
}
