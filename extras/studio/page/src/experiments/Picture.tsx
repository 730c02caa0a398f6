// A figure as it was drawn: as a picture, in which no script runs, with its caption, its files and its command.

import { useEffect, useState } from "react";
import { Copy } from "../common/Copy";
import { keep } from "../common/keep";
import { useStudio } from "../common/studio";
import type { DrawnFigure } from "../server";
import { results, type Style } from "./api";
import type { Figure } from "./drawn";

const SVG = "image/svg+xml";

interface Props {
  figure: Figure;
  experiment: string;
  style: Style;
  beside?: string;
  testid?: string;
}

export function Picture({ figure, experiment, style, beside = "", testid = "figure" }: Props) {
  const { drawn, wrong, busy } = figure;
  const address = useAddress(drawn?.shown ?? "");
  return (
    <figure className={busy ? "busy" : ""} aria-busy={busy} data-testid={testid}>
      {wrong && (
        <p className="wrong" role="alert" data-testid={`${testid}-wrong`}>
          {wrong}
        </p>
      )}
      {drawn && (
        <>
          {address && <img src={address} alt={`${drawn.title}. ${drawn.caption}`} data-line={drawn.line} />}
          <figcaption>
            <b>{drawn.title}.</b> {drawn.caption}
          </figcaption>
          <Keep drawn={drawn} experiment={experiment} style={style} beside={beside} testid={testid} />
          <pre className="command" data-testid={`${testid}-command`}>
            {drawn.command}
          </pre>
        </>
      )}
    </figure>
  );
}

function Keep({
  drawn,
  experiment,
  style,
  beside,
  testid,
}: Omit<Props, "figure"> & { drawn: DrawnFigure; testid: string }) {
  const { fail } = useStudio();
  const pdf = () =>
    results.figure(experiment, drawn.line, { style, kind: "pdf", ...(beside ? { beside } : {}) }).then(
      (found) =>
        keep(`${drawn.name}.pdf`, new Blob([bytes(found.files.pdf ?? "")], { type: "application/pdf" })),
      (error: Error) => fail(error.message),
    );
  return (
    <div className="row">
      <button
        type="button"
        onClick={() => keep(`${drawn.name}.svg`, new Blob([drawn.svg], { type: SVG }))}
        data-testid={`${testid}-svg`}
      >
        SVG
      </button>
      <button type="button" onClick={pdf} data-testid={`${testid}-pdf`}>
        PDF
      </button>
      <button
        type="button"
        onClick={() => keep(`${drawn.name}.csv`, new Blob([drawn.csv], { type: "text/csv" }))}
        data-testid={`${testid}-csv`}
      >
        CSV
      </button>
      <Copy text={() => drawn.command} said="the command is copied" testid={`${testid}-copy`}>
        Copy command
      </Copy>
    </div>
  );
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function useAddress(svg: string): string {
  const [address, setAddress] = useState("");
  useEffect(() => {
    if (!svg) return;
    const made = URL.createObjectURL(new Blob([svg], { type: SVG }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [svg]);
  return address;
}
