// Nodes: more of them in a network drawn by hand, and a shell in the one that is chosen.

import { valueAt, withAppended } from "../common/edit";
import { useStudio } from "../common/studio";
import type { Selected } from "./canvas/Canvas";
import type { LabDocument } from "./document";
import { FlowsPanel } from "./flows/FlowsPanel";
import { Packets } from "./Packets";
import { kindOf } from "./Start";

interface Props {
  document: LabDocument;
  selected: Selected;
  lab: string | null;
  onOpen: (node: string) => void;
}

const KINDS = { host: ["hosts", "h"], router: ["routers", "r"], switch: ["switches", "s"] } as const;

export function Nodes({ document, selected, lab, onOpen }: Props) {
  const { view } = useStudio();
  const { text } = document;
  const graph = kindOf(text) === "graph";
  const names = new Set(document.drawing?.nodes.map((node) => node.name) ?? []);
  const add = (kind: keyof typeof KINDS) => {
    const [list, letter] = KINDS[kind];
    const written = valueAt(text, ["topology", "graph", list]);
    const there = new Set([...names, ...(Array.isArray(written) ? written.map(String) : [])]);
    let number = 1;
    while (there.has(`${letter}${number}`)) number += 1;
    const name = `${letter}${number}`;
    const chosen = selected?.kind === "node" ? selected.name : null;
    let next = withAppended(text, ["topology", "graph", list], name);
    if (chosen) next = withAppended(next, ["topology", "graph", "links"], { between: [chosen, name] });
    document.change(next);
  };
  const node = selected?.kind === "node" ? selected.name : null;
  return (
    <section aria-label="Nodes">
      {graph && lab === null && (
        <fieldset className="row" disabled={view}>
          <legend>{node ? `Add, linked to ${node}` : "Add"}</legend>
          {(Object.keys(KINDS) as (keyof typeof KINDS)[]).map((kind) => (
            <button key={kind} type="button" onClick={() => add(kind)} data-testid={`add-${kind}`}>
              {kind}
            </button>
          ))}
        </fieldset>
      )}
      {node && lab && (
        <button type="button" onClick={() => onOpen(node)} disabled={view} data-testid="shell">
          Shell in {node}
        </button>
      )}
      {node && lab && <FlowsPanel key={`flows of ${node}`} lab={lab} node={node} />}
      {node && lab && !view && <Packets key={node} lab={lab} places={[node]} />}
    </section>
  );
}
