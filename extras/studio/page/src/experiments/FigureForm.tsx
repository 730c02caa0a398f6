// The choices of a figure: what, along which axis, grouped by what, of which runs and time.

import { Field } from "../common/Field";
import type { Experiment, Vocabulary } from "../server";
import { changed, type FigureKind, type Form, has, heldOf, KINDS, vocabulary } from "./line";

interface Props {
  form: Form;
  experiment: Pick<Experiment, "varied" | "values" | "metrics">;
  words: Vocabulary;
  onForm: (form: Form) => void;
}

export function FigureForm({ form, experiment, words, onForm }: Props) {
  const { varied, metrics } = experiment;
  const known = {
    metrics: metrics.length > 0 ? metrics : words.metrics.map((each) => each.name),
    series: words.series.map((each) => each.name),
    samples: words.samples.map((each) => each.name),
  };
  const set = (more: Partial<Form>) => onForm({ ...form, ...more });
  const of = vocabulary(form.kind);
  const told = of === null ? undefined : words[of].find((each) => each.name === form.what);
  const parameters = varied.length > 0 ? varied : Object.keys(experiment.values);
  const pairs = parameters.flatMap((one, at) =>
    parameters.slice(at + 1).map((other) => `${one} and ${other}`),
  );
  return (
    <>
      <Choice
        label="kind"
        value={form.kind}
        of={Object.entries(KINDS).map(([value, said]) => ({ value, said }))}
        onSet={(kind) => onForm(changed(form, kind as FigureKind, parameters, known))}
      />
      {of && (
        <Choice
          label={form.kind === "phase" ? "y" : "what"}
          value={form.what}
          of={known[of]}
          onSet={(what) => set({ what })}
        />
      )}
      {told && (
        <p className="quiet">
          {told.meaning} ({told.unit})
        </p>
      )}
      {has(form, "against") && (
        <Choice label="x" value={form.against} of={known.metrics} onSet={(against) => set({ against })} />
      )}
      {has(form, "by") && <Choice label="by" value={form.by} of={parameters} onSet={(by) => set({ by })} />}
      {has(form, "by2") && (
        <Choice label="and by" value={form.by2} of={parameters} onSet={(by2) => set({ by2 })} />
      )}
      {has(form, "scale") && (
        <Choice
          label={form.kind === "metric" ? "scale of x" : "scale"}
          value={form.scale}
          usual="by the values"
          of={words.scale}
          onSet={(scale) => set({ scale })}
        />
      )}
      {has(form, "values") && !form.bars && (
        <Choice
          label="scale of y"
          value={form.values}
          usual="by the values"
          of={words.values}
          onSet={(values) => set({ values })}
        />
      )}
      {has(form, "lines") && (
        <Choice
          label="lines"
          value={form.lines}
          usual="what else varies"
          of={["none", ...parameters, ...pairs]}
          onSet={(lines) => set({ lines })}
        />
      )}
      {has(form, "facets") && (
        <Choice
          label="panels"
          value={form.facets}
          usual="as many as it needs"
          of={[...parameters, ...pairs]}
          onSet={(facets) => set({ facets })}
        />
      )}
      {has(form, "points") && !form.bars && (
        <Choice label="points" value={form.points} of={words.points} onSet={(points) => set({ points })} />
      )}
      <More form={form} set={set} />
    </>
  );
}

function More({ form, set }: { form: Form; set: (more: Partial<Form>) => void }) {
  const field = (
    clause: "of" | "relative" | "where" | "run" | "flows" | "from" | "to",
    label: string,
    example: string,
  ) =>
    has(form, clause) && (
      <Field
        label={label}
        value={form[clause]}
        placeholder={example}
        clears
        onSet={(value) => set({ [clause]: value.trim() })}
      />
    );
  return (
    <>
      {field("of", "of", "each step, cross")}
      {field("where", "where", "rtt=20ms and loss=0%")}
      {field("run", "run", "all")}
      {field("flows", "flows", "all, ends, a name")}
      {field("from", "from", "10s")}
      {field("to", "to", "40s")}
      {field("relative", heldOf(form.kind), "reno")}
      {has(form, "bars") && <Tick label="bars" value={form.bars} onSet={(bars) => set({ bars })} />}
      {has(form, "band") && <Tick label="band" value={form.band} onSet={(band) => set({ band })} />}
    </>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  of: (string | { value: string; said: string })[];
  usual?: string;
  onSet: (value: string) => void;
}

export function Choice({ label, value, of, usual, onSet }: ChoiceProps) {
  const options = of.map((each) => (typeof each === "string" ? { value: each, said: each } : each));
  const unknown = value !== "" && !options.some((each) => each.value === value);
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onSet(event.target.value)} data-testid={`choose-${label}`}>
        {usual !== undefined && <option value="">{usual}</option>}
        {unknown && <option value={value}>{value}</option>}
        {options.map((each) => (
          <option key={each.value} value={each.value}>
            {each.said}
          </option>
        ))}
      </select>
    </label>
  );
}

function Tick({ label, value, onSet }: { label: string; value: boolean; onSet: (value: boolean) => void }) {
  return (
    <label>
      {label}
      <input
        type="checkbox"
        checked={value}
        onChange={(event) => onSet(event.target.checked)}
        data-testid={`choose-${label}`}
      />
    </label>
  );
}
