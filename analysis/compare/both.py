"""Two experiments beside each other, for `ewan exp compare` and Studio.

In: two experiments. Out: the differences of their descriptions, their circumstances and their results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ewan.analysis import comparisons, load, measurement_cache, summary
from ewan.analysis.compare import descriptions, results
from ewan.analysis.compare.certificates import of_certificates
from ewan.analysis.compare.page import ComparisonPage
from ewan.analysis.compare.results import TwoResults
from ewan.analysis.points import BySeed
from ewan.analysis.statistics import CONFIDENCE
from ewan.labs.base.documents import DocumentError
from ewan.labs.record import Certificate, quantities
from ewan.labs.record import summary as summaries
from ewan.labs.record.quantities import metric_of
from ewan.labs.record.summary import Number

MOST_LINES = 40


def compared(first: load.ExperimentResults, second: load.ExperimentResults, wanted: Sequence[str]) -> ComparisonPage:
    """Everything; LoadError where something of an experiment is damaged."""
    named = [*first.document.metrics, *second.document.metrics]
    chosen = list(wanted) or comparisons.usual(dict.fromkeys(name for name in named if metric_of(name)))
    one, two = by_seed(first, chosen), by_seed(second, chosen)
    pairs = results.matched(one, two)
    confidence = float(first.document.confidence or second.document.confidence or CONFIDENCE)
    runs = [(first.points[here][0], second.points[there][0]) for here, there in pairs[:1]]
    return ComparisonPage(
        first=first,
        second=second,
        circumstances=descriptions.of_circumstances(first, second),
        parameters=descriptions.of_parameters(first, second),
        text=descriptions.of_texts(first, second),
        labs=[row for pair in runs for row in descriptions.of_labs(*pair)],
        certificates=[
            row
            for one_run, other in runs
            for row in of_certificates(_certificate(first, one_run), _certificate(second, other))
        ],
        rows=results.rows(one, two, pairs, chosen, confidence),
        pairs=len(pairs),
        confidence=confidence,
    )


def _certificate(experiment: load.ExperimentResults, run: load.RunResults) -> Certificate | None:
    return None if run.certificate is None else experiment.certificate(run.certificate)


def by_seed(experiment: load.ExperimentResults, wanted: Sequence[str]) -> BySeed:
    """Values of each point's usable runs: those of summary.json where it has all that is wanted, else computed."""
    known = _known(experiment.directory)
    asked = [quantities.parse(name) for name in wanted]
    there = {name for run in known.values() for name in run}
    if not all(name in there for name in wanted):
        known = {number: each.values(asked) for number, each in measurement_cache.of_runs(experiment, asked).items()}
    return {
        point: {run.seed: known[run.number] for run in summary.usable(runs) if run.number in known}
        for point, runs in experiment.points.items()
    }


def _known(directory: Path) -> dict[int, dict[str, Number]]:
    """Metrics of runs in summary.json, by number; empty where there is none that this version reads."""
    try:
        found = summaries.read(directory)
    except (OSError, DocumentError):
        return {}
    return {
        run.number: {name: each.value for name, each in run.metrics.items() if each.value is not None}
        for run in found.runs
    }


def lines(found: ComparisonPage) -> list[str]:
    """The parts of the page that are no table: the differences of the scenarios, and the parts for which there are no
    data."""
    sides = {"first": found.first, "second": found.second}
    said = [f"{name}: {side.so_far} so far" for name, side in sides.items() if not side.complete]
    said += found.text[:MOST_LINES]
    if len(found.text) > MOST_LINES:
        said.append(f"… {len(found.text) - MOST_LINES} more lines of the scenarios are on the page")
    if not (found.text or found.parameters or found.labs):
        said.append("the descriptions are the same")
    if not found.circumstances:
        said.append("versions and circumstances are the same")
    if not found.pairs:
        said.append("no point of the parameters is in both: there are no results to compare")
    elif not found.rows:
        said.append("no metric that is asked for is in both: name others with --metric")
    elif any(row["p"] is not None for row in found.rows):
        said.append(f"p by Holm's correction over {len(found.rows)} rows; intervals of {found.confidence:.0%}")
    return said


TwoExperiments = TypedDict(
    "TwoExperiments",
    {
        "format": str,
        "first": str,
        "second": str,
        "page": str,
        "confidence": float,
        "so far": list[str],
        "parameters": list[dict[str, str]],
        "scenarios": list[str],
        "labs": list[dict[str, str]],
        "certificates": list[dict[str, str]],
        "circumstances": list[dict[str, str]],
        "results": list[TwoResults],
    },
)
"""The document that `ewan exp compare --json` prints."""


def document(found: ComparisonPage, place: Path) -> TwoExperiments:
    """All of it as JSON data."""
    return {
        "format": "ewan-two-experiments/1",
        "first": str(found.first.directory),
        "second": str(found.second.directory),
        "page": str(place),
        "confidence": found.confidence,
        "so far": [found.first.so_far, found.second.so_far],
        "parameters": [row._asdict() for row in found.parameters],
        "scenarios": list(found.text),
        "labs": [row._asdict() for row in found.labs],
        "certificates": [row._asdict() for row in found.certificates],
        "circumstances": [row._asdict() for row in found.circumstances],
        "results": list(found.rows),
    }
