// What the lab was measured to do last: its rows come while it is measured.

import { useCallback, useEffect, useState } from "react";
import { api } from "../api";
import { useAsked } from "../common/asked";
import { CertificateRows } from "../common/CertificateRows";
import { useStudio } from "../common/studio";
import type { Verification as Found } from "../server";
import type { LabDocument } from "./document";

interface Props {
  lab: string | null; // as the description calls it
  document: LabDocument;
}

/** Whether a lab that was measured is the one of this description; each clock has plans of its own. Null: not known yet. */
function useIsOf(found: Found | null, document: LabDocument): boolean | null {
  const { fail } = useStudio();
  const { name, text, current, refusal, drawing } = document;
  const virtual = found?.clock === "virtual";
  const [known, setKnown] = useState<{ text: string; plan: string } | null>(null);
  useEffect(() => {
    if (!virtual || !current) return;
    let old = false;
    api.describe(name, text, true).then(
      (told) => {
        if (!old) setKnown({ text, plan: told.drawing?.plan_sha256 ?? "" });
      },
      (error: Error) => fail(error.message),
    );
    return () => {
      old = true;
    };
  }, [virtual, current, name, text, fail]);
  if (found === null) return null;
  if (refusal !== null) return false;
  if (!current || (virtual && known?.text !== text)) return null;
  return found.plan_sha256 === (virtual ? known?.plan : drawing?.plan_sha256);
}

export function Verification({ lab, document }: Props) {
  const ask = useCallback(() => (lab === null ? Promise.resolve(null) : api.verification(lab)), [lab]);
  const quiet = useCallback(() => undefined, []); // others tell where the server is gone
  const [found] = useAsked<Found | null>(ask, null, quiet);
  const isOf = useIsOf(found, document);
  if (lab === null || found === null) return null;
  const when = found.time ? new Date(found.time).toLocaleString("en-GB") : "virtual clock";
  return (
    <section aria-label="Verification" data-testid="verification">
      <h3 className={found.whole && isOf !== false ? (found.passed ? "up" : "wrong") : "quiet"}>
        {found.whole ? found.words : `${lab}, measured so far: ${found.rows.length} rows`}
      </h3>
      <p className="quiet">
        {when}, {found.directory}
        {isOf === false && "; of another description than this one"}
      </p>
      {found.advice.map((line) => (
        <p key={line} className="warning">
          {line}
        </p>
      ))}
      <Rows found={found} />
      <ol className="quiet notes">
        {found.notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ol>
    </section>
  );
}

function Rows({ found }: { found: Found }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
    <section className="rows" tabIndex={0} aria-label="Rows of the verification">
      <CertificateRows columns={found.columns} rows={found.rows} />
    </section>
  );
}
