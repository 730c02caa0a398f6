"""The command `compare`: two experiments beside each other.

In: two directories. Out: what differs in their descriptions, their circumstances and their results, on the terminal
and as one page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from analysis import comparisons, load, summary
from analysis.compare import descriptions, page, results
from analysis.compare.descriptions import Difference, shortened
from analysis.compare.page import Compared
from analysis.points import BySeed
from analysis.statistics import CONFIDENCE
from labs import rundir, writing
from labs.commands.errors import Refused, guarded
from labs.commands.options import json_option, pass_context
from labs.context import Context
from labs.record import quantities
from labs.record.quantities import metric_of
from labs.sheet import Sheet, grid

PAGE = "compare.html"
MOST_LAB_ROWS, MOST_LINES, MOST_RESULTS = 24, 40, 120


@click.command("compare")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--metric", "wanted", metavar="METRIC", multiple=True, help="compare this; may be given again")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help=f"the page; {PAGE} in SECOND if absent"
)
@json_option
@guarded
@pass_context
def compare_command(
    context: Context, first: Path, second: Path, wanted: tuple[str, ...], output: Path | None, as_json: bool
) -> None:
    """Say what differs between two experiments: descriptions, versions, circumstances, results.

    Results are the means at each point that both have, with the interval of their difference. Runs are paired by seed
    where both have the same seeds. The metrics are those that the scenarios name.

    \b
    ewan compare results/20260102T030405Z-streams results/20260203T040506Z-streams
    ewan compare results/A results/B --metric "steady goodput of cross" --metric "rtt p95"
    """
    chosen = [_quantity(each) for each in wanted]
    try:
        found = compared(load.experiment(first), load.experiment(second), chosen)
    except load.LoadError as error:
        raise Refused(str(error)) from None
    place = output or second / PAGE
    try:
        writing.write(place, page.render(found))
    except OSError as error:
        raise Refused(f"{place}: {error.strerror}: name another file with --output") from None
    if output is None:
        rundir.give_back(second)
    if as_json:
        context.reporter.emit(document(found, place))
        return
    for sheet in sheets(found):
        context.reporter.console.print(sheet)
        context.reporter.console.print()
    for line in lines(found):
        context.reporter.console.print(line, soft_wrap=True, markup=False)
    context.reporter.console.print(str(place), soft_wrap=True)


def _quantity(words: str) -> str:
    try:
        return str(quantities.parse(words))
    except ValueError as error:
        raise Refused(f'--metric "{words}": {error}') from None


def compared(first: load.ExperimentResults, second: load.ExperimentResults, wanted: Sequence[str]) -> Compared:
    """Everything; LoadError where something of an experiment is damaged."""
    named = [*first.document.metrics, *second.document.metrics]
    chosen = list(wanted) or comparisons.usual(dict.fromkeys(name for name in named if metric_of(name)))
    one, two = by_seed(first, chosen), by_seed(second, chosen)
    pairs = results.matched(one, two)
    confidence = float(first.document.confidence or second.document.confidence or CONFIDENCE)
    runs = [(first.points[here][0], second.points[there][0]) for here, there in pairs[:1]]
    return Compared(
        first=first,
        second=second,
        circumstances=descriptions.of_circumstances(first, second),
        parameters=descriptions.of_parameters(first, second),
        text=descriptions.of_texts(first, second),
        labs=[row for pair in runs for row in descriptions.of_labs(*pair)],
        rows=results.rows(one, two, pairs, chosen, confidence),
        pairs=len(pairs),
        confidence=confidence,
    )


def by_seed(experiment: load.ExperimentResults, wanted: Sequence[str]) -> BySeed:
    """Values of each point's usable runs: those of summary.json where it has all that is wanted, else computed."""
    known = _known(experiment.directory)
    asked = [quantities.parse(name) for name in wanted]
    there = {name for run in known.values() for name in run}
    if not all(name in there for name in wanted):
        known = {run["number"]: run["values"] for run in summary.of_runs(experiment, asked)}
    return {
        point: {run.seed: known[run.number] for run in summary.usable(runs) if run.number in known}
        for point, runs in experiment.points.items()
    }


def _known(directory: Path) -> dict[int, dict[str, float]]:
    """Metrics of runs in summary.json, by number; empty where there is none that this version reads."""
    try:
        found: dict[str, Any] = orjson.loads((directory / "summary.json").read_bytes())
        if found["format"] != summary.FORMAT:
            return {}
        return {run["number"]: {name: each["value"] for name, each in run["metrics"].items()} for run in found["runs"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def sheets(found: Compared) -> list[Sheet]:
    """Tables for a terminal."""
    labs, more = shortened(found.labs, MOST_LAB_ROWS)
    told: list[tuple[str, list[Difference]]] = [
        ("Parameters", list(found.parameters)),
        (f"Labs, and {more} more that differ" if more else "Labs", labs),
        ("Versions and circumstances", list(found.circumstances)),
    ]
    built = [
        Sheet(title, ["", "first", "second"], [list(map(_plain, row)) for row in rows]) for title, rows in told if rows
    ]
    columns = ["metric", "where", "first", "second", "difference", "p", "second has"]
    keys = ("metric", "point", "first", "second", "difference", "p", "outcome")
    shown = [[_plain(row[key]) for key in keys] for row in (page.row(found, each) for each in found.rows)]
    if shown and not any(row[1] for row in shown):
        columns, shown = [columns[0], *columns[2:]], [[row[0], *row[2:]] for row in shown]
    return [*built, *([grid("Results", columns, shown, most=MOST_RESULTS)] if shown else [])]


def _plain(text: str) -> str:
    """Without what the terminal's library takes for markup."""
    return text.replace("[", r"\[")


def lines(found: Compared) -> list[str]:
    """What is no table: the scenarios' differences, and what there is nothing of."""
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


def document(found: Compared, place: Path) -> dict[str, Any]:
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
        "circumstances": [row._asdict() for row in found.circumstances],
        "results": list(found.rows),
    }
