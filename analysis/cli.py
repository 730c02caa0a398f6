"""The commands that read results: `report` (one experiment as a page), `runs` (what there is).

In: the command line. Out: report.html and figures in the experiment's directory; a table.
"""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from analysis import flent, load, report, summary
from labs import rundir
from labs.commands.errors import Refused, guarded
from labs.commands.options import json_option, pass_context
from labs.context import Context
from labs.record.experiment import DOCUMENT, Document
from labs.record.metrics import RANKED
from labs.record.quantities import metric_of
from labs.sheet import Sheet
from labs.units.shown import fitting, interval_in


@click.command("report")
@click.argument("run", metavar="[RUN]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--flent", "flent_directory", metavar="DIR", type=click.Path(path_type=Path), help="also write files for flent"
)
@guarded
@pass_context
def report_command(context: Context, run: Path | None, flent_directory: Path | None) -> None:
    """Make the report of an experiment: report.html in its directory, each figure as SVG and CSV.

    RUN is a directory that `ewan run` or `ewan hstts` made; of the experiment that ended last when none is named.

    \b
    ewan report results/20260102T030405Z-parallel-streams
    ewan report --flent out/flent
    """
    directory = run or ended_last()
    try:
        summary.analyse(directory)
        page = report.write(directory)
        files = flent.write(load.experiment(directory), flent_directory) if flent_directory else []
    except load.LoadError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        reason = f"{error.filename or directory}: {error.strerror}"
        raise Refused(f"{reason}: make room there, or name a directory where you may write") from None
    rundir.give_back(directory)
    context.reporter.console.print(str(page), soft_wrap=True)
    if flent_directory:
        context.reporter.console.print(f"{len(files)} files for flent in {flent_directory}", soft_wrap=True)


def ended_last() -> Path:
    """The experiment in results/ that ended last; where none has ended, the one that began last.

    Refused where there is none that can be read.
    """
    found: dict[Path, tuple[bool, str, int, Path]] = {}
    unreadable = None
    for path in sorted(rundir.RESULTS.glob(f"*/{DOCUMENT}")):
        try:
            document = load.experiment(path.parent).document
        except load.LoadError as error:
            unreadable = error
            continue
        # The document tells whole seconds; it is written for the last time at the end.
        moment = document.ended or document.started
        found[path.parent] = (document.ended is not None, moment, path.stat().st_mtime_ns, path)
    if not found:
        empty = f"there is no experiment in {rundir.RESULTS}/: make run SCENARIO=parallel-streams makes one"
        raise Refused(str(unreadable or empty))
    return max(found, key=lambda directory: found[directory])


@click.command("runs")
@json_option
@guarded
@pass_context
def runs_command(context: Context, as_json: bool) -> None:
    """List the experiments in results/: when, what, how far, whether verified, with what result."""
    places = sorted(path for path in rundir.RESULTS.glob("*") if path.is_dir())
    rows = [describe(path) for path in places if (path / DOCUMENT).exists()]
    if as_json:
        context.reporter.emit(rows)
        return
    columns = ["started", "directory", "clock", "runs", "status", "verified", "result"]
    marked = [
        {**row, "status": row["status"] + f", {row['disturbed']} disturbed" * (row["disturbed"] > "0")} for row in rows
    ]
    shown = [[row[column] for column in columns] for row in marked]
    if rows:
        # A directory's name is there to be copied.
        context.reporter.console.print(Sheet("Experiments", columns, shown, whole=frozenset(columns[:-1])))
    others = len(places) - len(rows)
    words = (
        f"{others} other director{'y' if others == 1 else 'ies'}: labs, verifications, measurements" if others else ""
    )
    if not rows:
        words = f"no experiments in {rundir.RESULTS}/" + (f", {words}" if words else "")
    if words:
        context.reporter.messages.print(words, style="dim", soft_wrap=True)


def describe(path: Path) -> dict[str, str]:
    """A row of `ewan runs`; an experiment that cannot be read has a row that says so."""
    empty = ("scenario", "started", "clock", "runs", "disturbed", "verified", "result")
    row = {"directory": str(path), **dict.fromkeys(empty, "")}
    try:
        experiment = load.experiment(path)
    except load.LoadError:
        return {**row, "status": "not readable"}
    document = experiment.document
    complete = sum(run.status == "complete" for run in experiment.runs)
    return {
        **row,
        "scenario": document.scenario,
        "started": document.started[:16].replace("T", " "),
        "clock": document.clock,
        "runs": f"{complete}/{len(experiment.runs)}",
        "status": experiment.status,
        "disturbed": disturbed(document),
        "verified": verified(document),
        "result": headline(path, experiment),
    }


def disturbed(document: Document) -> str:
    """In how many of its runs links left their tolerance for a time; empty where nobody watched."""
    watched = [run.disturbed for run in document.runs if run.disturbed is not None]
    return str(sum(bool(seconds) for seconds in watched)) if watched else ""


def verified(document: Document) -> str:
    """Whether all labs of an experiment passed their verification, in a word."""
    said = [run.verified for run in document.runs]
    if any(each is False for each in said):
        return "no"
    if said and all(said):
        return "yes"
    return "–"


def headline(path: Path, experiment: load.ExperimentResults) -> str:
    """One metric: the scenario's first, or that which says most; of several points the least and the largest."""
    try:
        points = orjson.loads((path / "summary.json").read_bytes())["points"]
    except (OSError, ValueError, KeyError):
        return ""
    for name in [*experiment.document.metrics, *RANKED]:
        means = [point["metrics"][name]["mean"] for point in points if name in point["metrics"]]
        if means and (metric := metric_of(name)):
            divisor, unit = fitting(means, metric.unit)
            ends = dict.fromkeys(interval_in(divisor, value, None, None) for value in (min(means), max(means)))
            return f"{name} {' to '.join(ends)} {unit}".rstrip()
    return ""
