// The rows of a certificate, as `ewan lab` prints them: whole ones, and those of a lab that is still measured.

const KINDS: Record<string, string> = { ok: "up", outside: "wrong" };
const WORDS = new Set(["link", "direction", "quantity", "verdict", "note"]);
const HEADS: Record<string, string> = { U: "U (k = 2)" };

export function CertificateRows({ columns, rows }: { columns: string[]; rows: string[][] }) {
  return (
    <table>
      <thead>
        <tr>
          {columns.map((head) => (
            <th key={head}>{HEADS[head] ?? head}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells) => (
          <tr key={cells.join(" ")} data-testid="verified-row">
            {cells.map((cell, at) => {
              const head = columns[at] ?? "";
              const kind = WORDS.has(head) ? undefined : "number";
              return (
                <td key={head} className={head === "verdict" ? KINDS[cell] : kind}>
                  {cell}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
