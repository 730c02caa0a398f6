// A link: what a packet meets each way, its settings in the description, and while the lab is up changes of it and its course.

import { type ReactNode, useState } from "react";
import { api, type Heading } from "../api";
import { type Path, valueAt, withValue } from "../common/edit";
import { type Setting, settingsOf } from "../common/editor/words";
import { Field } from "../common/Field";
import { useStudio } from "../common/studio";
import { NS, time } from "../common/units";
import type { DrawnLink, LinkChange } from "../server";
import type { LabDocument } from "./document";
import { type Course, key } from "./frames";
import { indexOfLink } from "./graph";
import { Packets } from "./Packets";
import { Plot } from "./Plot";

const FIRST = ["rate", "delay", "buffer", "loss", "queue", "jitter"]; // the others are below
const FIRST_LIVE = ["rate", "loss", "buffer"]; // the delay has a slider
const LONGEST_MS = 500;
const PLOTS = [
  { title: "Mbit/s", column: "rate", colour: "#0072b2" },
  { title: "queue, kB", column: "queue", colour: "#d55e00" },
] as const;
const FURTHER_PLOTS = [
  { title: "packets dropped or lost", column: "dropped", colour: "#d55e00" },
  { title: "packets marked", column: "marked", colour: "#009e73" },
  { title: "release error, µs", column: "lateness", colour: "#cc79a7" },
] as const;

interface Props {
  link: DrawnLink;
  document: LabDocument;
  lab: string | null; // the lab that is up, whose link it is
  down: boolean;
  done: LinkChange[]; // in the lab, of all of its links
  course: (name: string) => Course | undefined;
  onRemove: (() => void) | null; // where it can be removed
}

/** Where a link's setting stands: at the link of a graph, else among `links:`. */
function placeOf(text: string, link: string, setting: string): Path {
  const at = indexOfLink(text, link);
  if (at >= 0) return ["topology", "graph", "links", at, setting];
  return ["links", link, setting];
}

export function LinkPanel(props: Props) {
  const { link, document, lab } = props;
  const { view, schema } = useStudio();
  if (link.role === "plain") return <p>{link.name} is a wire: it delays nothing and loses nothing.</p>;
  return (
    <section aria-label={`Link ${link.name}`}>
      <h2>{link.name}</h2>
      <Train link={link} heading="forward" />
      <Train link={link} heading="backward" />
      {lab === null ? (
        <fieldset disabled={view}>
          <legend>In the description</legend>
          <Settings settings={settingsOf(schema)} first={FIRST}>
            {({ name }) => {
              const place = placeOf(document.text, link.name, name);
              const shared = valueAt(document.text, ["wan", name]);
              return (
                <Field
                  key={name}
                  label={name}
                  value={String(valueAt(document.text, place) ?? "")}
                  placeholder={shared === undefined ? "default" : `wan: ${String(shared)}`}
                  onSet={(value) => document.change(withValue(document.text, place, value))}
                />
              );
            }}
          </Settings>
          {props.onRemove && (
            <button type="button" onClick={props.onRemove} data-testid="remove">
              Remove {link.name}
            </button>
          )}
        </fieldset>
      ) : (
        <Running {...props} lab={lab} />
      )}
    </section>
  );
}

interface SettingsProps {
  settings: Setting[];
  first: string[];
  children: (setting: Setting) => ReactNode;
}

/** A field for each setting: the usual ones, and the others where they are asked for. */
function Settings({ settings, first, children }: SettingsProps) {
  const usual = first.flatMap((name) => settings.filter((each) => each.name === name));
  return (
    <>
      {usual.map(children)}
      <details>
        <summary>other settings</summary>
        {settings.filter((each) => !usual.includes(each)).map(children)}
      </details>
    </>
  );
}

/** The stages of a direction, in the order in which a packet meets them. */
function Train({ link, heading }: { link: DrawnLink; heading: Heading }) {
  const way = link[heading];
  if (!way) return null;
  const [from, to] = heading === "forward" ? [link.a, link.b] : [link.b, link.a];
  return (
    <ol className="train" aria-label={`${from} to ${to}`}>
      <li className="end">{from}</li>
      {way.words.map((word) => (
        <li key={word}>{word}</li>
      ))}
      <li className="end">{to}</li>
    </ol>
  );
}

function Running({ link, lab, down, done, course }: Props & { lab: string }) {
  const { view, schema, now, fail, say } = useStudio();
  const [wait, setWait] = useState("");
  const later = wait.trim() !== "";
  const at = `+${/^[\d.]+$/.test(wait.trim()) ? `${wait.trim()}s` : wait.trim()}`;
  const marks = () => done.filter((each) => each.link === link.name).map((each) => each.due);
  const [heading, setHeading] = useState<Heading | "both">("both");
  const [delay, setDelay] = useState<number | null>(null);
  const [busy, setBusy] = useState(false);
  const set = (words: Record<string, string>) =>
    api.set(lab, link.name, { words: later ? { ...words, at } : words, direction: heading }).then(
      () => {
        say(
          `${link.name}: ${Object.entries(words)
            .map(([name, value]) => `${name}=${value}`)
            .join(" ")}, ${heading}${later ? `, in ${at.slice(1)}` : ""}`,
        );
        now();
      },
      (error: Error) => fail(error.message),
    );
  const carrier = (up: boolean) => {
    if (later) {
      api.later(lab, link.name, up, at).then(
        () => {
          say(`${link.name}: ${up ? "up" : "down"}, in ${at.slice(1)}`);
          now();
        },
        (error: Error) => fail(error.message),
      );
      return;
    }
    setBusy(true);
    api
      .carrier(lab, link.name, up)
      .then(
        async (told) => {
          await now(); // else the button does again what it just did
          say(`${link.name}: ${up ? "up" : "down"}${told.words}`);
        },
        (error: Error) => fail(error.message),
      )
      .finally(() => setBusy(false));
  };
  const shown = delay ?? Math.round((link.forward?.delay_ns ?? 0) / NS.ms);
  return (
    <fieldset disabled={view}>
      <legend>
        {later ? `In ${at.slice(1)}` : "Now"}, in {lab}
      </legend>
      <label>
        when
        <input
          value={wait}
          placeholder="now; 10s: in ten seconds"
          onChange={(event) => setWait(event.target.value)}
          data-testid="when"
        />
      </label>
      <label>
        direction
        <select value={heading} onChange={(event) => setHeading(event.target.value as Heading | "both")}>
          <option value="both">both</option>
          <option value="forward">
            {link.a} → {link.b}
          </option>
          <option value="backward">
            {link.b} → {link.a}
          </option>
        </select>
      </label>
      <label>
        delay {time(shown * NS.ms)}
        <input
          type="range"
          min={0}
          max={LONGEST_MS}
          value={shown}
          data-testid="delay"
          onChange={(event) => setDelay(Number(event.target.value))}
          onPointerUp={() => delay !== null && set({ delay: `${delay}ms` })}
          onKeyUp={() => delay !== null && set({ delay: `${delay}ms` })}
        />
      </label>
      <Settings settings={settingsOf(schema).filter((each) => each.live)} first={FIRST_LIVE}>
        {({ name }) => (
          <Field
            key={name}
            label={name}
            value=""
            placeholder="as it is"
            onSet={(value) => set({ [name]: value })}
          />
        )}
      </Settings>
      <button type="button" disabled={busy} onClick={() => carrier(down)} data-testid="carrier">
        {busy ? "waiting for the routes …" : down ? "Mend the link" : "Fail the link"}
      </button>
      <Packets lab={lab} places={[`${link.name}:forward`, `${link.name}:backward`]} />
      {(["forward", "backward"] as const).map((way) => (
        <div key={way}>
          <h3>{way === "forward" ? `${link.a} → ${link.b}` : `${link.b} → ${link.a}`}</h3>
          {PLOTS.map((each) => (
            <Plot key={each.column} {...each} marks={marks} course={() => course(key(link.name, way))} />
          ))}
          <details>
            <summary>drops, marks, release error</summary>
            {FURTHER_PLOTS.map((each) => (
              <Plot key={each.column} {...each} marks={marks} course={() => course(key(link.name, way))} />
            ))}
          </details>
        </div>
      ))}
    </fieldset>
  );
}
