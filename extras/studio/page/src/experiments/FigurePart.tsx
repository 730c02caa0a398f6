// A figure of an experiment with other axes: how it is chosen, and the figure beside that. The line and the style stand
// in the address.

import { hashOf, replace, withQuery } from "../common/route";
import type { Experiment } from "../server";
import type { Style } from "./api";
import { Choices } from "./Choices";
import { useDrawn } from "./drawn";
import { Choice } from "./FigureForm";
import { usual } from "./line";
import { Picture } from "./Picture";

interface Props {
  experiment: Experiment;
  line: string;
  style: string;
}

export function FigurePart({ experiment, line, style: asked }: Props) {
  const style = asked as Style; // the server refuses another one that the address has
  const wanted = line || usual(experiment.asked, experiment.varied, experiment.metrics);
  const figure = useDrawn(experiment.name, wanted, style);
  const go = (next: string, look: string) =>
    replace(
      withQuery(hashOf("experiments", experiment.name, "figure", next), {
        style: look === "page" ? "" : look,
      }),
    );
  return (
    <div className="plotted">
      <Choices line={wanted} drawn={figure.drawn} experiment={experiment} onLine={(next) => go(next, style)}>
        {({ style: known }) => (
          <Choice label="size" value={style} of={known} onSet={(look) => go(wanted, look)} />
        )}
      </Choices>
      <Picture figure={figure} experiment={experiment.name} style={style} />
    </div>
  );
}
