// What a person calls an experiment: its name, tags and note, changed as by `ewan exp tag`.

import { type FormEvent, useState } from "react";
import { useStudio } from "../common/studio";
import type { Labels as Change, Experiment } from "../server";
import { results } from "./api";

export function Labels({ experiment, read }: { experiment: Experiment; read: () => void }) {
  const { view, fail, say } = useStudio();
  const [tag, setTag] = useState("");
  const [editing, setEditing] = useState(false);
  const change = (labels: Change, said: string) =>
    results.label(experiment.name, labels).then(
      () => {
        say(said);
        setTag("");
        read();
        return true;
      },
      (error: Error) => {
        fail(error.message);
        return false; // what was typed stays
      },
    );
  const add = (event: FormEvent) => {
    event.preventDefault();
    const words = tag.split(/[\s,]+/).filter(Boolean);
    if (words.length > 0) change({ tags: words.map((word) => `+${word}`) }, `tagged ${words.join(", ")}`);
  };
  return (
    <div className="labels">
      <div className="row">
        {experiment.tags.map((each) => (
          <span key={each} className="tag" data-testid={`tag-${each}`}>
            {each}
            {!view && (
              <button
                type="button"
                aria-label={`take the tag ${each} away`}
                onClick={() => change({ tags: [`-${each}`] }, `the tag ${each} is away`)}
              >
                ×
              </button>
            )}
          </span>
        ))}
        {!view && (
          <form className="row" onSubmit={add}>
            <input
              value={tag}
              onChange={(event) => setTag(event.target.value)}
              placeholder="add a tag"
              aria-label="add a tag"
              data-testid="add-tag"
            />
            <button
              type="button"
              className="text"
              onClick={() => setEditing(!editing)}
              data-testid="edit-labels"
            >
              {editing ? "close" : "name and note"}
            </button>
          </form>
        )}
      </div>
      {experiment.note && !editing && <p className="note">{experiment.note}</p>}
      {editing && !view && <Words experiment={experiment} change={change} done={() => setEditing(false)} />}
    </div>
  );
}

interface WordsProps {
  experiment: Experiment;
  change: (labels: Change, said: string) => Promise<boolean>;
  done: () => void;
}

function Words({ experiment, change, done }: WordsProps) {
  const [name, setName] = useState(experiment.called);
  const [note, setNote] = useState(experiment.note);
  const keep = (event: FormEvent) => {
    event.preventDefault();
    change({ name, note }, "name and note are written").then((written) => written && done());
  };
  return (
    <form className="words" onSubmit={keep}>
      <label>
        name
        <input value={name} onChange={(event) => setName(event.target.value)} data-testid="label-name" />
      </label>
      <label>
        note
        <textarea
          rows={3}
          value={note}
          onChange={(event) => setNote(event.target.value)}
          data-testid="label-note"
        />
      </label>
      <button type="submit" data-testid="keep-labels">
        Write
      </button>
    </form>
  );
}
