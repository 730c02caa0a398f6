// Places for all nodes at once, and none of one's own any more.

import { useState } from "react";
import { valueAt } from "../common/edit";
import { useStudio } from "../common/studio";
import type { Drawing } from "../server";
import { arranged, type Places } from "./canvas/arrange";

interface Props {
  drawing: Drawing | null;
  text: string;
  onPlaces: (places: Places | null) => void; // null: those of the description are forgotten
}

export function ArrangeButtons({ drawing, text, onPlaces }: Props) {
  const { view, fail } = useStudio();
  const [busy, setBusy] = useState(false);
  const arrange = () => {
    if (!drawing) return;
    setBusy(true);
    arranged(drawing)
      .then(onPlaces, (error: Error) => fail(`no layout: ${error.message}`))
      .finally(() => setBusy(false));
  };
  return (
    <div className="row">
      <button type="button" onClick={arrange} disabled={view || busy || !drawing} data-testid="lay-out">
        {busy ? "laying out …" : "Lay out"}
      </button>
      <button
        type="button"
        onClick={() => onPlaces(null)}
        disabled={view || valueAt(text, ["layout"]) === undefined}
        data-testid="forget-places"
      >
        Forget positions
      </button>
    </div>
  );
}
