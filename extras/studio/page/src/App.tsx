// The page: its head with the ways to its pages, and the one that is shown.

import type { ReactElement } from "react";
import { CopyLink } from "./common/Copy";
import { hashOf, PAGES, placeOf, useHash } from "./common/route";
import { StudioState, useStudio } from "./common/studio";
import { ExperimentsPage } from "./experiments/ExperimentsPage";
import { LabPage } from "./lab/LabPage";
import { ReplayPage } from "./replay/ReplayPage";
import { ScenarioPage } from "./scenario/ScenarioPage";

const NAMES: Record<(typeof PAGES)[number], string> = {
  lab: "Lab",
  scenario: "Scenario",
  experiments: "Experiments",
};

export function App() {
  return (
    <StudioState>
      <Pages />
    </StudioState>
  );
}

function Pages(): ReactElement {
  const { view, told } = useStudio();
  const place = placeOf(useHash());
  return (
    <div className="page">
      <header>
        <h1>ewan studio</h1>
        <nav aria-label="Pages">
          {PAGES.map((name) => (
            <a
              key={name}
              href={hashOf(name)}
              aria-current={place.page === name ? "page" : undefined}
              data-testid={`page-${name}`}
            >
              {NAMES[name]}
            </a>
          ))}
        </nav>
        {view && <span className="up">view only</span>}
        <CopyLink />
        <output className={told?.wrong ? "wrong" : ""} data-testid="told">
          {told?.text ?? ""}
        </output>
      </header>
      {/* The lab goes on while another page is looked at: its terminal, its courses. */}
      <LabPage shown={place.page === "lab"} asked={place.page === "lab" ? (place.words[0] ?? null) : null} />
      {place.page === "scenario" && <ScenarioPage asked={place.words[0] ?? null} />}
      {place.page === "experiments" && <ExperimentsPage words={place.words} query={place.query} />}
      {place.page === "replay" && <ReplayPage key={place.words.slice(0, 2).join("/")} words={place.words} />}
    </div>
  );
}
