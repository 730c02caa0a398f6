// Packets at a node or a link: listed as they come, or kept as pcapng for Wireshark.

import { useEffect, useRef, useState } from "react";
import { captured, socket } from "../api";
import { useStudio } from "../common/studio";

const MOST_LETTERS = 40_000;

interface Props {
  lab: string;
  places: string[]; // `left1`, `core:forward`
}

export function Packets({ lab, places }: Props) {
  const { fail } = useStudio();
  const [place, setPlace] = useState(places[0] ?? "");
  const [filter, setFilter] = useState("");
  const [longest, setLongest] = useState("10s");
  const [lines, setLines] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const open = useRef<WebSocket | null>(null);
  useEffect(() => () => open.current?.close(), []);

  const stop = () => open.current?.close();
  const show = () => {
    stop();
    setLines("");
    const asked = new URLSearchParams({ place, filter });
    const line = socket(`/ws/live/${encodeURIComponent(lab)}/packets?${asked}`);
    open.current = line;
    line.onmessage = (event: MessageEvent<string>) =>
      setLines((old) => `${old ?? ""}${event.data}`.slice(-MOST_LETTERS));
    line.onclose = (event) => {
      if (event.reason) fail(event.reason);
      if (open.current === line) open.current = null;
      setBusy((old) => old && open.current !== null);
    };
  };
  const download = () => {
    setBusy(true);
    captured(lab, place, filter, longest)
      .then(
        (blob) => {
          const link = document.createElement("a");
          link.href = URL.createObjectURL(blob);
          link.download = `${lab}-${place.replace(":", "-")}.pcapng`;
          link.click();
          URL.revokeObjectURL(link.href);
        },
        (error: Error) => fail(error.message),
      )
      .finally(() => setBusy(false));
  };
  return (
    <fieldset>
      <legend>Packets</legend>
      {places.length > 1 && (
        <label>
          where
          <select value={place} onChange={(event) => setPlace(event.target.value)}>
            {places.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      <label>
        filter
        <input
          value={filter}
          placeholder="icmp, tcp port 5001, …"
          onChange={(event) => setFilter(event.target.value)}
          data-testid="filter"
        />
      </label>
      <label>
        for
        <input value={longest} onChange={(event) => setLongest(event.target.value)} data-testid="longest" />
      </label>
      <div className="row">
        <button type="button" onClick={show} data-testid="show-packets">
          Show
        </button>
        <button type="button" onClick={stop} disabled={lines === null}>
          Stop
        </button>
        <button type="button" onClick={download} disabled={busy} data-testid="download">
          {busy ? "capturing …" : "Download"}
        </button>
      </div>
      {lines !== null && (
        <pre className="packets" data-testid="packets">
          {lines || "…"}
        </pre>
      )}
    </fieldset>
  );
}
