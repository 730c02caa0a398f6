// The routing table of a node of a lab that is up, as its kernel has it now.

import { useEffect, useState } from "react";
import type { TableRoute } from "../server";
import { ways } from "./paths";

const EVERY_MS = 2000;

export function RoutingTable({ lab, node }: { lab: string; node: string }) {
  const [rows, setRows] = useState<TableRoute[] | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    let gone = false;
    const ask = () =>
      ways.table(lab, node).then(
        (found) => {
          if (gone) return;
          setRows(found);
          setWhy("");
        },
        (error: Error) => !gone && setWhy(error.message),
      );
    ask();
    const timer = setInterval(ask, EVERY_MS);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [lab, node]);
  return (
    <details open data-testid="routes">
      <summary>Routing table</summary>
      {why && <p className="wrong">{why}</p>}
      <div className="scrolls">
        <table>
          <thead>
            <tr>
              <th>to</th>
              <th>via</th>
              <th>interface</th>
              <th>metric</th>
            </tr>
          </thead>
          <tbody>
            {rows?.map((row) => (
              <tr key={`${row.to} ${row.interface} ${row.metric}`}>
                <td>{row.to}</td>
                <td>{row.via || "at hand"}</td>
                <td>
                  {row.interface}
                  {row.carries ? "" : ", no carrier"}
                </td>
                <td>{row.metric}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
