// Experiments of the directory: all of them, one of them, two beside each other. The address says which.
// `#/experiments?tag=figure`, `#/experiments/NAME/certificates/ID`, `#/experiments/NAME/beside/OTHER`.

import { Beside } from "./Beside";
import { List } from "./List";
import { One } from "./One";
import "./experiments.css";

interface Props {
  words: string[];
  query: URLSearchParams;
}

export function ExperimentsPage({ words, query }: Props) {
  const [name, part, ...rest] = words;
  if (name === undefined) return <List query={query} />;
  if (part === "beside" && rest[0] !== undefined)
    return (
      <Beside key={`${name}/${rest[0]}`} first={name} second={rest[0]} line={rest[1] ?? ""} query={query} />
    );
  return <One key={name} name={name} part={part ?? ""} rest={rest} query={query} />;
}
