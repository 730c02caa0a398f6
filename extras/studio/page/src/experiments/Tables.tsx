// Result tables, as the report has them, and what the scenario asks to be compared.

import type { Experiment, Table } from "../server";

export function Tables({ experiment }: { experiment: Experiment }) {
  if (experiment.tables.length === 0)
    return <p className="quiet">There are no results yet: making the report computes them.</p>;
  return (
    <div data-testid="tables">
      <Comparisons experiment={experiment} />
      {experiment.tables.map((table) => (
        <Shown key={table.title} table={table} />
      ))}
      <p className="quiet">Means over seeds, with intervals where there are several.</p>
    </div>
  );
}

export function Shown({ table }: { table: Table }) {
  return (
    <>
      <h3>{table.title}</h3>
      <div className="wide">
        <table>
          <thead>
            <tr>
              {table.columns.map((head) => (
                <th key={head}>{head}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((cells, line) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows are in the order of the experiment's points
              <tr key={line}>
                {cells.map((cell, at) => (
                  <td key={table.columns[at]} className="number">
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Comparisons({ experiment }: { experiment: Experiment }) {
  if (experiment.comparisons.length === 0) return null;
  const columns = ["what", "where", "metric", "reference", "here", "difference", "p", "effect", "outcome"];
  const rows = experiment.comparisons.map((each) => [
    each.value,
    each.where,
    each.metric,
    each.reference,
    each.here,
    each.difference,
    each.p,
    each.effect,
    each.outcome,
  ]);
  return <Shown table={{ title: "Comparisons", columns, rows }} />;
}
