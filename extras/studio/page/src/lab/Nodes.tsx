// Nodes: more of them in a network drawn by hand, other names, links and routing; a shell in the one that is chosen.

import { useState } from "react";
import { valueAt, withLayout, without, withValue } from "../common/edit";
import { choicesOf } from "../common/editor/words";
import { Field } from "../common/Field";
import { useStudio } from "../common/studio";
import type { Places } from "./canvas/arrange";
import type { Selected } from "./canvas/Canvas";
import { namesOf } from "./canvas/shown";
import type { LabDocument } from "./document";
import { FlowsPanel } from "./flows/FlowsPanel";
import { KINDS, NAME, type NodeKind, withLink, withName, withNode } from "./graph";
import { Packets } from "./Packets";
import { freePlace } from "./places";
import { RoutingTable } from "./RoutingTable";
import { kindOf } from "./Start";

interface Props {
  document: LabDocument;
  selected: Selected;
  lab: string | null;
  onOpen: (node: string) => void;
  onSelect: (what: Selected) => void;
  onRemove: () => void;
}

export function Nodes(props: Props) {
  const { document, selected, lab, onOpen } = props;
  const { view } = useStudio();
  const node = selected?.kind === "node" ? selected.name : null;
  const kind = document.drawing?.nodes.find((each) => each.name === node)?.kind;
  return (
    <section aria-label="Nodes">
      {node && kind && (
        <h2>
          {node} <span className="quiet">{kind}</span>
        </h2>
      )}
      {kindOf(document.text) === "graph" && lab === null && <Drawn {...props} node={node} />}
      {lab === null && <Routing document={document} />}
      {node && lab && kind && kind !== "switch" && (
        <RoutingTable key={`routes ${node}`} lab={lab} node={node} />
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

function Routing({ document }: { document: LabDocument }) {
  const { view, schema } = useStudio();
  const { text } = document;
  const now = String(valueAt(text, ["routing"]) ?? "static");
  return (
    <label>
      routing
      <select
        value={now}
        disabled={view}
        data-testid="routing"
        onChange={({ target }) =>
          document.change(
            target.value === "static"
              ? without(text, ["routing"])
              : withValue(text, ["routing"], target.value),
          )
        }
      >
        {choicesOf(schema, "routing").map((word) => (
          <option key={word}>{word}</option>
        ))}
      </select>
    </label>
  );
}

/** Of a network drawn by hand. */
function Drawn({ document, selected, node, onSelect, onRemove }: Props & { node: string | null }) {
  const { view, fail } = useStudio();
  const { text } = document;
  const names = document.drawing?.nodes.map((each) => each.name) ?? [];
  const [other, setOther] = useState("");
  const add = (kind: NodeKind) => {
    const [next, name] = withNode(text, kind, names, node);
    const at: Places = new Map(document.drawing?.nodes.map((each) => [each.name, [each.x, each.y]]));
    at.set(name, freePlace(name, node === null ? [] : [{ a: node, b: name }], at));
    for (const [each, [x, y]] of at) at.set(each, [Math.round(x), Math.round(y)]);
    document.change(withLayout(next, at)); // nobody moves, not when the file is opened again either
    if (node === null) onSelect({ kind: "node", name });
  };
  const rename = (name: string) => {
    if (!NAME.test(name)) return fail(`"${name}": write small letters, digits and -, a letter first`);
    if (names.includes(name)) return fail(`"${name}": another node has this name`);
    const at = document.drawing?.nodes.find((each) => each.name === node);
    const next = withName(text, node ?? "", name);
    document.change(at ? withValue(next, ["layout", name], [Math.round(at.x), Math.round(at.y)]) : next);
    onSelect({ kind: "node", name });
  };
  return (
    <fieldset disabled={view}>
      <legend>{node ? `Add, linked to ${node}` : "Add"}</legend>
      <div className="row">
        {(Object.keys(KINDS) as NodeKind[]).map((kind) => (
          <button key={kind} type="button" onClick={() => add(kind)} data-testid={`add-${kind}`}>
            {kind}
          </button>
        ))}
      </div>
      {node && (
        <>
          <label>
            link to
            <span className="row">
              <select value={other} onChange={(event) => setOther(event.target.value)} data-testid="link-to">
                <option value="">…</option>
                {names
                  .filter((each) => each !== node)
                  .map((each) => (
                    <option key={each}>{each}</option>
                  ))}
              </select>
              <button
                type="button"
                disabled={other === ""}
                data-testid="join"
                onClick={() => {
                  document.change(withLink(text, node, other));
                  setOther("");
                }}
              >
                Join
              </button>
            </span>
          </label>
          <Field key={node} label="name" value={node} onSet={rename} />
        </>
      )}
      {selected && (
        <button type="button" onClick={onRemove} data-testid="remove">
          Remove {namesOf(selected).slice(0, 3).join(", ")}
          {namesOf(selected).length > 3 ? " …" : ""}
        </button>
      )}
    </fieldset>
  );
}
