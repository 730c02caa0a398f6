// Experiments of the directory, with their reports.

import { api } from "../api";
import { useAsked } from "../common/asked";
import { useStudio } from "../common/studio";
import { ReplayLinks } from "../replay/ReplayLinks";

export function ExperimentsPage() {
  const { fail } = useStudio();
  const [experiments] = useAsked(api.experiments, [], fail);
  return (
    <section className="whole" aria-label="Experiments">
      <table>
        <thead>
          <tr>
            <th>experiment</th>
            <th>runs</th>
            <th>status</th>
            <th>result</th>
          </tr>
        </thead>
        <tbody>
          {experiments.map((each) => {
            const place = each.directory.split("/").pop() ?? "";
            return (
              <tr key={place}>
                <td>
                  <a
                    href={`/results/${encodeURIComponent(place)}/report.html`}
                    target="_blank"
                    rel="noreferrer"
                  >
                    {each.name || each.scenario || place}
                  </a>
                  <div className="quiet">
                    {each.began.slice(0, 16).replace("T", " ")} {each.clock} {each.tags.join(" ")}
                  </div>
                </td>
                <td>
                  {each.runs}
                  <ReplayLinks experiment={place} />
                </td>
                <td>
                  {each.status}
                  {each.verified === "no" ? ", not verified" : ""}
                </td>
                <td>{each.result}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {experiments.length === 0 && <p className="quiet">There are no experiments here yet.</p>}
    </section>
  );
}
