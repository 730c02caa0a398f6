// One experiment: its head with the ways to its parts, and the part that the address names.

import { type ReactElement, useCallback, useEffect, useState } from "react";
import { hashOf } from "../common/route";
import { useStudio } from "../common/studio";
import type { Experiment } from "../server";
import { About } from "./About";
import { results } from "./api";
import { Certificates } from "./Certificates";
import { FigurePart } from "./FigurePart";
import { Files } from "./Files";
import { Labels } from "./Labels";
import { Runs } from "./Runs";
import { Tables } from "./Tables";

const PARTS: Record<string, string> = {
  "": "Report",
  runs: "Runs",
  certificates: "Certificates",
  results: "Results",
  figure: "Figure",
  files: "Files",
};

const AGAIN_MS = 3000; // of an experiment that goes on
const ENDED = new Set(["ended", "lost"]); // states of jobs

interface Props {
  name: string;
  part: string;
  rest: string[];
  query: URLSearchParams;
}

export function One({ name, part, rest, query }: Props) {
  const { jobs } = useStudio();
  const [found, setFound] = useState<Experiment | null>(null);
  const [wrong, setWrong] = useState("");
  const read = useCallback(() => {
    results.one(name).then(
      (experiment) => {
        setFound(experiment);
        setWrong("");
      },
      (error: Error) => setWrong(error.message),
    );
  }, [name]);
  // What a job of this experiment has changed is read when the job has ended.
  const ended = jobs.filter(
    (job) => ENDED.has(job.state) && job.words.some((word) => word.endsWith(name)),
  ).length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is read again when another job has ended
  useEffect(read, [read, ended]);
  const goes = found?.status === "running";
  useEffect(() => {
    if (!goes) return;
    const timer = setInterval(read, AGAIN_MS);
    return () => clearInterval(timer);
  }, [goes, read]);
  if (found === null)
    return (
      <section className="whole results" aria-label="Experiment">
        {wrong && (
          <p className="wrong" role="alert" data-testid="unreadable">
            {wrong}
          </p>
        )}
        <a href={hashOf("experiments")}>All experiments</a>
      </section>
    );
  return (
    <section className="whole results one" aria-label="Experiment">
      <Head experiment={found} part={part} read={read} />
      {wrong && <p className="wrong">{wrong}</p>}
      <Part experiment={found} part={part} rest={rest} query={query} />
    </section>
  );
}

function Head({ experiment, part, read }: { experiment: Experiment; part: string; read: () => void }) {
  const { name, title, called, so_far, status, warnings } = experiment;
  return (
    <>
      <div className="row head">
        <a href={hashOf("experiments")} title="all experiments">
          ←
        </a>
        <h2>{called || title}</h2>
        <span className={status === "complete" ? "up" : "wrong"} data-testid="status">
          {status}
        </span>
        <span className="quiet">
          {called ? `${title}, ` : ""}
          {so_far}, {name}
        </span>
      </div>
      <Labels experiment={experiment} read={read} />
      {warnings.map((words) => (
        <p key={words} className="warning">
          {words}
        </p>
      ))}
      <nav aria-label="Parts of the experiment">
        {Object.entries(PARTS).map(([key, words]) => (
          <a
            key={key}
            href={hashOf("experiments", name, ...(key ? [key] : []))}
            aria-current={key === part ? "page" : undefined}
            data-testid={`part-${key || "report"}`}
          >
            {words}
          </a>
        ))}
      </nav>
    </>
  );
}

function Part({
  experiment,
  part,
  rest,
  query,
}: { experiment: Experiment } & Omit<Props, "name">): ReactElement {
  switch (part) {
    case "runs":
      return <Runs experiment={experiment} />;
    case "certificates":
      return (
        <Certificates experiment={experiment} chosen={rest[0] ?? experiment.certificates[0]?.id ?? ""} />
      );
    case "results":
      return <Tables experiment={experiment} />;
    case "figure":
      return <FigurePart experiment={experiment} line={rest[0] ?? ""} style={query.get("style") ?? "page"} />;
    case "files":
      return <Files experiment={experiment} />;
    case "":
      return <About experiment={experiment} />;
    default:
      return <p className="wrong">There is no part {part} of an experiment.</p>;
  }
}
