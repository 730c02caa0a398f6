// What the lab was measured to do last: its rows come while it is measured.

import { useCallback } from "react";
import { api, type Verification as Found } from "../api";
import { useAsked } from "../common/asked";
import { CertificateRows } from "../common/CertificateRows";

interface Props {
  lab: string | null; // as the description calls it
  plan: string; // hash of what the description asks for
}

export function Verification({ lab, plan }: Props) {
  const ask = useCallback(() => (lab === null ? Promise.resolve(null) : api.verification(lab)), [lab]);
  const quiet = useCallback(() => undefined, []); // others tell where the server is gone
  const [found] = useAsked<Found | null>(ask, null, quiet);
  if (lab === null || found === null) return null;
  const when = found.time ? new Date(found.time).toLocaleString("en-GB") : "virtual clock";
  return (
    <section aria-label="Verification" data-testid="verification">
      <h3 className={found.whole ? (found.passed ? "up" : "wrong") : ""}>
        {found.whole ? found.words : `${lab}, measured so far: ${found.rows.length} rows`}
      </h3>
      <p className="quiet">
        {when}, {found.directory}
        {found.plan_sha256 !== plan && "; of another description than this one"}
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
