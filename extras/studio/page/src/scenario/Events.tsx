// Events as a table: when, which link, what; and one more by form.

import { useState } from "react";
import { withAppended, without, withValue } from "../common/edit";
import { settingsOf } from "../common/editor/words";
import { Field } from "../common/Field";
import { useStudio } from "../common/studio";
import type { ScenarioDocument } from "./document";
import type { Placed } from "./times";

const WORDS: Record<string, string> = { down: "fail", up: "mend" };

interface Props {
  document: ScenarioDocument;
  events: Placed[];
  links: string[];
  looked: number | null;
}

export function Events({ document, events, links, looked }: Props) {
  const { view, schema } = useStudio();
  const settings = settingsOf(schema).filter((each) => each.live);
  const [link, setLink] = useState("");
  const [at, setAt] = useState("5s");
  const [what, setWhat] = useState<string>("delay");
  const [value, setValue] = useState("");
  const [direction, setDirection] = useState("both");
  const carrier = what === "down" || what === "up";
  const example = settings.find((each) => each.name === what)?.example;
  const named = links.includes(link) ? link : (links[0] ?? "");
  const add = () =>
    document.change(
      withAppended(document.text, ["events"], {
        at,
        link: named,
        ...(direction === "both" || carrier ? {} : { direction }),
        [what]: carrier ? true : value || example,
      }),
    );
  return (
    <fieldset disabled={view} className="events-table">
      <legend>Events</legend>
      {events.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>at</th>
              <th>link</th>
              <th>change</th>
              <th>
                <span className="unseen">remove</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {events.map((each) => (
              <tr key={each.number} className={each.number === looked ? "looked" : ""}>
                <td>
                  <Field
                    label={`at ${each.number + 1}`}
                    value={each.at}
                    onSet={(text) =>
                      document.change(withValue(document.text, ["events", each.number, "at"], text))
                    }
                  />
                </td>
                <td>{each.link}</td>
                <td>{each.words}</td>
                <td>
                  <button
                    type="button"
                    onClick={() => document.change(without(document.text, ["events", each.number]))}
                    aria-label={`Remove ${each.words} at ${each.at}`}
                    data-testid={`remove-event-${each.number}`}
                  >
                    Remove
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div className="row">
        <input
          aria-label="at"
          value={at}
          onChange={(event) => setAt(event.target.value)}
          size={6}
          data-testid="event-at"
        />
        <select
          aria-label="link"
          value={named}
          onChange={(event) => setLink(event.target.value)}
          data-testid="event-link"
        >
          {links.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <select
          aria-label="change"
          value={what}
          onChange={(event) => setWhat(event.target.value)}
          data-testid="event-what"
        >
          {[...settings.map((each) => each.name), ...Object.keys(WORDS)].map((each) => (
            <option key={each} value={each}>
              {WORDS[each] ?? each}
            </option>
          ))}
        </select>
        {!carrier && (
          <>
            <input
              aria-label="value"
              value={value}
              placeholder={example}
              onChange={(event) => setValue(event.target.value)}
              size={9}
              data-testid="event-value"
            />
            <select
              aria-label="direction"
              value={direction}
              onChange={(event) => setDirection(event.target.value)}
            >
              <option value="both">both ways</option>
              <option value="forward">forward</option>
              <option value="backward">backward</option>
            </select>
          </>
        )}
        <button type="button" onClick={add} disabled={named === ""} data-testid="add-event">
          Add an event
        </button>
      </div>
    </fieldset>
  );
}
