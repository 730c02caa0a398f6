// What of a lab is looked at, as it stands in the address: a link or a node, and the path of a pair.
// `?link=core`, `?node=left1`, `?link=core&from=left1&to=right1`.

import { useCallback, useEffect, useState } from "react";
import { placeOf } from "../common/route";
import type { Selected } from "./canvas/shown";
import type { Ends } from "./paths";

export interface Looked {
  selected: Selected;
  ends: Ends | null;
}

export function lookedOf(query: URLSearchParams): Looked {
  const [link, node, source, sink] = ["link", "node", "from", "to"].map((key) => query.get(key));
  const selected: Selected = link ? { kind: "link", name: link } : node ? { kind: "node", name: node } : null;
  return { selected, ends: source && sink ? { source, sink } : null };
}

/** Of several nodes, which only are removed or moved together, the address says nothing. */
export function queryOf({ selected, ends }: Looked): Record<string, string> {
  return {
    ...(selected && selected.kind !== "nodes" ? { [selected.kind]: selected.name } : {}),
    ...(ends ? { from: ends.source, to: ends.sink } : {}),
  };
}

/** From the address, also when another one is opened; an address that says nothing changes nothing. */
export function useLooked() {
  const [looked, setLooked] = useState<Looked>(() => asked() ?? { selected: null, ends: null });
  useEffect(() => {
    const take = () => setLooked((now) => asked() ?? now);
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);
  const setSelected = useCallback((selected: Selected) => setLooked((now) => ({ ...now, selected })), []);
  const setEnds = useCallback((ends: Ends | null) => setLooked((now) => ({ ...now, ends })), []);
  return { ...looked, setSelected, setEnds };
}

/** What the address says of a lab, if it says anything. */
function asked(): Looked | null {
  const { page, query } = placeOf(location.hash);
  return page === "lab" && query.toString() !== "" ? lookedOf(query) : null;
}
