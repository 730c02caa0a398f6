"""The command `compare`: two experiments beside each other.

In: two directories. Out: what differs in their descriptions, their circumstances and their results, on the terminal
and as one page.
"""

from __future__ import annotations

from pathlib import Path

import click

from ewan.analysis import load
from ewan.analysis.compare import page
from ewan.analysis.compare.both import TwoExperiments, compared, document, lines
from ewan.analysis.compare.descriptions import DescriptionDifference, shortened
from ewan.analysis.compare.page import ComparisonPage
from ewan.labs import rundir
from ewan.labs.base import writing
from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.context import Context
from ewan.labs.record import quantities

PAGE = "compare.html"
MOST_LAB_ROWS, MOST_RESULTS = 24, 120


@click.command("compare")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--metric", "wanted", metavar="METRIC", multiple=True, help="compare this metric; may be given again")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help=f"the page (default: {PAGE} in SECOND)"
)
@json_option(lambda: TwoExperiments)
@guarded
@pass_context
def compare_command(
    context: Context, first: Path, second: Path, wanted: tuple[str, ...], output: Path | None, as_json: bool
) -> None:
    """Show the differences between two experiments: descriptions, certificates, versions, circumstances, results.

    Results are the means at each point that both have, with the interval of their difference. Runs are paired by seed
    where both have the same seeds. The metrics are those that the scenarios name.

    \b
    ewan exp compare results/20260102T030405Z-streams results/20260203T040506Z-streams
    ewan exp compare results/A results/B --metric "steady goodput of cross" --metric "rtt p95"
    """
    chosen = [_quantity(each) for each in wanted]
    try:
        found = compared(load.experiment(first), load.experiment(second), chosen)
    except load.LoadError as error:
        raise Refused(str(error)) from None
    place = output or second / PAGE
    if output is None:
        rundir.check(second)
    try:
        writing.write(place, page.render(found))
    except OSError as error:
        raise Refused(writing.trouble(error, place, "name another file with --output")) from None
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


def sheets(found: ComparisonPage) -> list[Sheet]:
    """Tables for a terminal."""
    labs, more = shortened(found.labs, MOST_LAB_ROWS)
    certificates, others = shortened(found.certificates, MOST_LAB_ROWS)
    told: list[tuple[str, list[DescriptionDifference]]] = [
        ("Parameters", list(found.parameters)),
        (f"Labs, and {more} more that differ" if more else "Labs", labs),
        (f"Certificates, and {others} more that differ" if others else "Certificates", certificates),
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
    """The text without markup of the terminal's library."""
    return text.replace("[", r"\[")
