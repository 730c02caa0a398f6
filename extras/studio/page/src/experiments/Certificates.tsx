// What an experiment's labs were measured to do: a certificate of each lab, and one of them whole.

import { useEffect, useState } from "react";
import { CertificateRows } from "../common/CertificateRows";
import { hashOf } from "../common/route";
import type { CertificateSheet, Experiment } from "../server";
import { results } from "./api";

export function Certificates({ experiment, chosen }: { experiment: Experiment; chosen: string }) {
  if (experiment.certificates.length === 0)
    return (
      <p className="warning">There is no certificate: nobody measured whether the links do what was asked.</p>
    );
  return (
    <>
      <ul className="certificates">
        {experiment.certificates.map((each) => (
          <li key={each.id}>
            <a
              href={hashOf("experiments", experiment.name, "certificates", each.id)}
              aria-current={each.id === chosen ? "true" : undefined}
            >
              {each.id}
            </a>{" "}
            <span className={each.passed ? "" : "wrong"}>{each.words}</span>{" "}
            <span className="quiet">
              run{each.runs.length === 1 ? "" : "s"} {each.runs.join(", ")}
            </span>
          </li>
        ))}
      </ul>
      {experiment.more_certificates > 0 && (
        <p className="quiet">
          {experiment.more_certificates} more passed: the runs name them, and ewan lab certificate shows them
          all.
        </p>
      )}
      <Whole key={chosen} experiment={experiment.name} id={chosen} />
    </>
  );
}

function Whole({ experiment, id }: { experiment: string; id: string }) {
  const [found, setFound] = useState<CertificateSheet | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    results.certificate(experiment, id).then(setFound, (error: Error) => setWrong(error.message));
  }, [experiment, id]);
  if (wrong)
    return (
      <p className="wrong" role="alert">
        {wrong}
      </p>
    );
  if (!found) return null;
  return (
    <div data-testid="certificate">
      <h3 className={found.passed ? "up" : "wrong"}>{found.words}</h3>
      <p className="quiet lines">{found.circumstances.join("\n")}</p>
      {found.advice.map((line) => (
        <p key={line} className="warning">
          {line}
        </p>
      ))}
      <div className="wide">
        <CertificateRows columns={found.columns} rows={found.rows} />
      </div>
    </div>
  );
}
