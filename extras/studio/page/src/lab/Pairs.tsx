// Who talks to whom: base RTT, bottleneck, bandwidth-delay product.

import { rate, size, time } from "../common/units";
import type { Drawing } from "../server";
import type { Ends } from "./paths";

const MOST = 200;

interface Props {
  drawing: Drawing | null;
  onLink: (name: string) => void;
  onPair: (ends: Ends) => void;
}

export function Pairs({ drawing, onLink, onPair }: Props) {
  const pairs = drawing?.pairs ?? [];
  return (
    <section aria-label="Pairs">
      <table>
        <thead>
          <tr>
            <th>pair</th>
            <th>base RTT</th>
            <th>bottleneck</th>
            <th>rate</th>
            <th>BDP</th>
          </tr>
        </thead>
        <tbody>
          {pairs.slice(0, MOST).map((pair) => (
            <tr key={`${pair.source} ${pair.sink}`}>
              <td>
                <button type="button" className="text" title="draw its path" onClick={() => onPair(pair)}>
                  {pair.source} → {pair.sink}
                </button>
              </td>
              <td>{time(pair.rtt_ns)}</td>
              <td>
                <button type="button" className="text" onClick={() => onLink(pair.bottleneck)}>
                  {pair.bottleneck}
                </button>
              </td>
              <td>{rate(pair.bottleneck_bps)}</td>
              <td>{size(pair.bdp_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {pairs.length > MOST && <p>and {pairs.length - MOST} more</p>}
    </section>
  );
}
