// What was done in the lab that is up, by whoever did it; and a scenario that does it again.

import { useCallback } from "react";
import { api } from "../api";
import { useAsked } from "../common/asked";
import { hashOf } from "../common/route";
import { useStudio } from "../common/studio";
import { handOver } from "../scenario/document";
import type { LinkChange } from "../server";

const NOTHING: LinkChange[] = [];

export function useDone(lab: string | null): LinkChange[] {
  const ask = useCallback(() => (lab === null ? Promise.resolve(NOTHING) : api.done(lab)), [lab]);
  const quiet = useCallback(() => undefined, []); // a lab that has just gone down; others tell where the server is gone
  return useAsked(ask, NOTHING, quiet)[0];
}

export function DoneList({ lab, done, text }: { lab: string; done: LinkChange[]; text: string }) {
  const { view, fail } = useStudio();
  const make = () =>
    api.recorded(lab, text).then(
      (found) => {
        handOver(`${lab}-again.scenario.yaml`, found.text);
        location.hash = hashOf("scenario");
      },
      (error: Error) => fail(error.message),
    );
  if (done.length === 0) return null;
  const now = Date.now() / 1000;
  return (
    <section aria-label="Done so far">
      <h3>Done so far</h3>
      <table data-testid="done">
        <tbody>
          {done.map((each, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list grows at its end
            <tr key={at}>
              <td>{new Date(each.due * 1000).toLocaleTimeString("en-GB")}</td>
              <td>{each.link}</td>
              <td>
                {each.words}
                {each.due > now && <span className="quiet"> to come</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <button type="button" disabled={view} onClick={make} data-testid="make-scenario">
        Make a scenario of what was done
      </button>
    </section>
  );
}
