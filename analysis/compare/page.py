"""Two experiments beside each other as one HTML file, which needs no server, no network and no script.

In: what was compared. Out: the page. Figures of the same name, as the experiments' reports have drawn them, stand side
by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from ewan.analysis import circumstances, report, report_tables
from ewan.analysis.compare.descriptions import DescriptionDifference, shortened
from ewan.analysis.compare.results import TwoResults
from ewan.analysis.load import ExperimentResults, word
from ewan.labs.base.units.shown import typographic, with_interval, written

MOST_LAB_ROWS = 200


@dataclass(frozen=True)
class ComparisonPage:
    """All that is known of two experiments beside each other. `pairs`: how many points both have."""

    first: ExperimentResults
    second: ExperimentResults
    circumstances: Sequence[DescriptionDifference]
    parameters: Sequence[DescriptionDifference]
    text: Sequence[str]
    labs: Sequence[DescriptionDifference]
    certificates: Sequence[DescriptionDifference]
    rows: Sequence[TwoResults]
    pairs: int
    confidence: float


def render(found: ComparisonPage) -> str:
    """The page."""
    labs, more = shortened(found.labs, MOST_LAB_ROWS)
    return (
        report.environment()
        .get_template("compare.html.j2")
        .render(
            sides=[_side(each) for each in (found.first, found.second)],
            circumstances=found.circumstances,
            parameters=found.parameters,
            text=found.text,
            labs=labs,
            more_labs=more,
            certificates=found.certificates[:MOST_LAB_ROWS],
            more_certificates=max(len(found.certificates) - MOST_LAB_ROWS, 0),
            rows=[row(found, each) for each in found.rows],
            pairs=found.pairs,
            confidence=written(found.confidence, "share"),
            figures=_figures(found.first.directory, found.second.directory),
        )
    )


class ComparedSide(NamedTuple):
    """One of the two experiments, as the page shows it."""

    name: str
    title: str
    scenario: str
    runs: str
    started: str | None
    warnings: Sequence[str]


class ComparedFigures(NamedTuple):
    """A figure that both have: SVG, or where it is."""

    name: str
    sides: Sequence[Markup | str]


def _side(experiment: ExperimentResults) -> ComparedSide:
    document = experiment.document
    return ComparedSide(
        name=experiment.directory.name,
        title=document.title or document.scenario,
        scenario=document.scenario,
        runs=experiment.so_far,
        started=circumstances.when(document.started),
        warnings=report.warnings(experiment),
    )


def row(found: ComparisonPage, each: TwoResults) -> dict[str, str]:
    """A row of the results in words."""
    varied = [name for name in each["parameters"] if name in (*found.first.varied, *found.second.varied)]
    first, second = each["first"], each["second"]
    return {
        "point": ", ".join(word(name, each["parameters"][name]) for name in varied),
        "metric": each["metric"],
        "first": typographic(with_interval(first["mean"], first["low"], first["high"], each["unit"])),
        "second": typographic(with_interval(second["mean"], second["low"], second["high"], each["unit"])),
        "n": f"{first['n']}, {second['n']}" + (" paired" if each["paired"] else ""),
        **{name: text for name, text in report_tables.tested(each, each["unit"]).items() if name != "n"},
    }


def _figures(first: Path, second: Path) -> list[ComparedFigures]:
    """The figures that both have, in the order of their names; a figure that is too large for the page is only named
    there."""
    both = [{path.stem: path for path in sorted((each / "figures").glob("*.svg"))} for each in (first, second)]
    return [
        ComparedFigures(name, [_drawn(each[name], f"{side}{number}") for side, each in zip("ab", both, strict=True)])
        for number, name in enumerate(name for name in both[0] if name in both[1])
    ]


def _drawn(path: Path, prefix: str) -> Markup | str:
    text = path.read_text()
    return Markup(report.inline(text, prefix)) if len(text) <= report.LONGEST_EMBEDDED else str(path)
