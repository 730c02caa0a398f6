"""The commands that read results: `report` (one experiment as a page), `runs` (what there is).

In: the command line. Out: report.html and figures in the experiment's directory; a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click
from rich.markup import escape

from ewan.analysis import experiment_list, export, export_kinds, flent, load, report, single_figure, summary
from ewan.analysis import latex as tables_latex
from ewan.analysis.figures import custom
from ewan.analysis.figures.request import FigureError
from ewan.analysis.figures.style import FILE_KINDS, STYLES
from ewan.labs import rundir
from ewan.labs.base import codec, writing
from ewan.labs.base.product import RESULTS, command
from ewan.labs.base.sheet import Sheet
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, renamed_option
from ewan.labs.context import Context
from ewan.labs.record import figures
from ewan.labs.record.experiment import DOCUMENT, State
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.series import series_named

style_option = click.option(
    "--style", "look", type=click.Choice(list(STYLES)), default="page", help="size of each figure's file"
)


@click.command("report")
@click.argument("run", metavar="[RUN]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--flent", "flent_directory", metavar="DIR", type=click.Path(path_type=Path), help="also write files for flent"
)
@click.option(
    "--figure",
    "lines",
    metavar="TEXT",
    multiple=True,
    help="draw this figure too (docs/how-to/experiments/figures.md); may be given again",
)
@click.option("--pdf", is_flag=True, help="write each figure as PDF too, with embedded fonts")
@style_option
@guarded
@pass_context
def report_command(
    context: Context, run: Path | None, flent_directory: Path | None, lines: tuple[str, ...], pdf: bool, look: str
) -> None:
    """Make the report of an experiment: report.html in its directory, each figure as SVG and CSV.

    RUN is a directory that `ewan run` or `ewan suite hstts` made; without it, the experiment that ended last is taken.

    \b
    ewan results report results/20260102T030405Z-parallel-streams
    ewan results report --figure 'goodput by buffer, lines congestion' --pdf --style paper-1col
    ewan results report --flent out/flent
    """
    directory = run or ended_last()
    try:
        chosen = [wish(line, "--figure") for line in lines]
        rundir.check(directory)
        checked(chosen, directory)
        summary.analyse(directory, [quantity for figure in chosen for quantity in figure.quantities])
        kinds = ["pdf"] * pdf + ["png"] * (look == "slide")
        made = report.write_files(directory, report.Choice(tuple(chosen), STYLES[look], tuple(kinds)))
        files = flent.write(load.experiment(directory), flent_directory) if flent_directory else []
    except (load.LoadError, FigureError) as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise unwritable(error, directory) from None
    rundir.give_back(directory)
    for line in (f"{made.page} (open it in a browser)", *map(str, made.others)):
        context.reporter.console.print(line, soft_wrap=True, markup=False)
    _so_far(context, load.experiment_once(directory))
    if flent_directory:
        context.reporter.console.print(f"{len(files)} files for flent in {flent_directory}", soft_wrap=True)


class _WithFormats(click.Command):
    """A command with one more option for each format that an extra writes scenarios in, as `--nxe FILE.xml`."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options and arguments of the command, those of formats before `--size`."""
        own = super().get_params(ctx)
        place = next(number for number, each in enumerate(own) if each.name == "scale")
        path = click.Path(path_type=Path)
        formats: list[click.Parameter] = [
            click.Option([f"--{name}"], metavar=each.into, type=path, help=each.what)
            for name, each in export_kinds.formats().items()
        ]
        return [*own[:place], *formats, *own[place:]]


def _of_results(kind: str, *name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option of a kind that is made of results."""
    found = export_kinds.RESULTS[kind]
    return click.option(f"--{kind}", *name, metavar=found.into, type=click.Path(path_type=Path), help=found.what)


@click.command("export", cls=_WithFormats)
@click.argument("run", metavar="[RUN]", required=False, type=click.Path(path_type=Path))
@_of_results("latex")
@_of_results("csv")
@_of_results("parquet")
@_of_results("flent", "flents")
@_of_results("reference", "small")
@renamed_option(
    "--size",
    "scale",
    old="--scale",
    metavar="NAME",
    help="with --nxe, --ns2, --ns3: one of the sizes of the scenario",
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="with --nxe, --ns2, --ns3: a parameter")
@guarded
@pass_context
def export_command(
    context: Context,
    /,
    run: Path | None,
    latex: Path | None,
    csv: Path | None,
    parquet: Path | None,
    flents: Path | None,
    small: Path | None,
    scale: str | None,
    settings: tuple[str, ...],
    **formats: Path | None,
) -> None:
    """Write the results of an experiment for papers and for other programs, or the experiment itself for others to run.

    RUN is a directory that `ewan run` or `ewan suite hstts` made; without it, the experiment that ended last is taken.
    With --nxe, --ns2 and --ns3 it may be a scenario too, which need not have been run (nxe.md and simulators.md in
    docs/how-to/experiments).

    \b
    ewan results export results/20260102T030405Z-parallel-streams --latex tables --csv data
    ewan results export --parquet data --flent data
    ewan results export labs/library/parallel-streams.scenario.yaml --set streams=2 --nxe streams.xml --ns3 streams.cc
    """
    if any(formats.values()):
        if latex or csv or parquet or flents or small:
            raise Refused("results and an experiment for others are written by two commands: leave one out")
        _export_experiment(context, run or ended_last(), formats, scale, settings)
        return
    if scale or settings:
        raise Refused(f"--size and --set are of {_listed(formats)}: leave them out")
    if not (latex or csv or parquet or flents or small):
        raise Refused(
            "what is to be written, and where? write one of --latex, --csv, --parquet and --flent with a directory, or "
            f"of {_listed(['reference', *formats])} with a file"
        )
    directory = run or ended_last()
    made: list[tuple[str, Path, dict[Path, bytes | str]]] = []
    try:
        experiment = load.experiment(directory)
        found = summary.found(directory)
        if latex:
            made.append(("tables for LaTeX", latex, export.texts(latex, tables_latex.write(experiment, found))))
        if csv:
            texts = {"points.csv": export.points(experiment, found), "runs.csv": export.runs(experiment, found)}
            made.append(("CSV", csv, export.texts(csv, texts)))
        if parquet:
            made.append(("Parquet", parquet, export.parquet(parquet, experiment)))
        if flents:
            made.append(("for flent", flents, flent.files(experiment, flents)))
        if small:
            made.append(("reference", small.parent, {small: export.reference(experiment, found)}))
        writing.write_all({path: content for _, _, files in made for path, content in files.items()})
    except load.LoadError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(writing.trouble(error, directory, "name a directory where you may write")) from None
    _so_far(context, experiment)
    for what, place, contents in made:
        files = f"{len(contents)} file{'' if len(contents) == 1 else 's'}"
        context.reporter.console.print(f"{what}: {files} in {place}", soft_wrap=True, markup=False)


def _listed(names: Iterable[str]) -> str:
    """Options in a sentence: `--nxe, --ns2 and --ns3`."""
    *first, last = [f"--{name}" for name in names] or ["formats that extras add"]
    return f"{', '.join(first)} and {last}" if first else last


def _export_experiment(
    context: Context, run: Path, others: Mapping[str, Path | None], scale: str | None, settings: Sequence[str]
) -> None:
    """Writes a scenario, or that of an experiment."""
    from ewan.experiments import scenarios

    chosen = dict(text.partition("=")[::2] for text in settings)
    if wrong := next((text for text in settings if not all(text.partition("="))), None):
        raise Refused(f'--set "{wrong}": write KEY=VALUE, like streams=5 or "streams=1,2,5"')
    wanted = {kind: target for kind, target in others.items() if target is not None}
    files: dict[Path, bytes | str] = {}
    for kind, target in wanted.items():
        files |= scenarios.files(kind, run, target, scale, chosen)
    try:
        paths = writing.write_all(files)
    except OSError as error:
        raise Refused(writing.trouble(error, next(iter(wanted.values())), "name a file that you may write")) from None
    for path in paths:
        context.reporter.console.print(str(path), soft_wrap=True, markup=False)


@click.command("plot")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("figure", metavar="FIGURE")
@click.option("--run", "number", metavar="N", help="only this run (default: median and band over the seeds of all)")
@renamed_option("--flow", "flows", old="--flows", metavar="WHICH", help="all, ends, or a flow's name")
@click.option("--from", "begin", metavar="TIME", help="begin at this time after T0, like 10s")
@click.option("--to", "end", metavar="TIME", help="end at this time after T0")
@style_option
@click.option(
    "--beside", metavar="RUN", type=click.Path(path_type=Path), help="draw the runs of this experiment on the same axes"
)
@renamed_option(
    "--output",
    "-o",
    "out",
    old="--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="the file, ending in .svg, .pdf or .png",
)
@guarded
@pass_context
def plot_command(
    context: Context,
    run: Path,
    figure: str,
    number: str | None,
    flows: str | None,
    begin: str | None,
    end: str | None,
    look: str,
    beside: Path | None,
    out: Path | None,
) -> None:
    """Draw one figure of an experiment: a series over time, or any figure of docs/how-to/experiments/figures.md.

    Its data are written beside it as CSV. Without --output it is put among the experiment's figures. With --beside the
    figure is of two experiments: `experiment` is one more parameter, like "lines experiment".

    \b
    ewan results plot results/20260102T030405Z-streams cwnd --run 12 --flow all --from 10s --to 40s
    ewan results plot results/20260102T030405Z-streams 'cdf of rtt, lines buffer' --style paper-1col --output rtt.pdf
    ewan results plot results/A 'goodput by buffer' --beside results/B --output both.svg
    """
    line = f"{figure} over time" if series_named(figure) or figure == "shares" else figure
    clauses = {"run": number, "flows": flows, "from": begin, "to": end}
    spec = wish(", ".join([line, *(f"{name} {text}" for name, text in clauses.items() if text)]), "plot")
    kind = STYLES[look].usual if out is None else out.suffix.removeprefix(".").lower()
    if kind not in FILE_KINDS:
        raise Refused(f'--output "{out}": write a file that ends in .svg, .pdf or .png')
    path = out or run / "figures" / f"{spec.file}.{kind}"
    if out is None:
        rundir.check(run)
    try:
        experiment, drawing = single_figure.drawn(run, spec, STYLES[look], [kind], beside)
        path.parent.mkdir(parents=True, exist_ok=True)
        writing.write(path, drawing.files.get(kind, drawing.svg))
        writing.write(path.with_suffix(".csv"), drawing.csv)
    except (load.LoadError, FigureError) as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise unwritable(error, path) from None
    rundir.give_back(run)
    context.reporter.console.print(str(path), soft_wrap=True)
    context.reporter.messages.print(drawing.caption, style="dim", soft_wrap=True)
    _so_far(context, experiment)


def _so_far(context: Context, experiment: load.ExperimentResults) -> None:
    """Prints how many runs are complete, for an experiment that still runs or was interrupted."""
    if not experiment.complete:
        context.reporter.messages.print(f"so far: {experiment.so_far}", soft_wrap=True)


def wish(line: str, where: str) -> FigureSpec:
    """The figure that a line asks for; Refused for any other line."""
    try:
        return figures.parse(line)
    except ValueError as error:
        raise Refused(f"{where}: {error}") from None


def checked(chosen: Sequence[FigureSpec], directory: Path) -> None:
    """Refused for a figure of a parameter that no run has, before anything is measured; LoadError."""
    known = custom.values(load.experiment(directory)) if chosen else {}
    for spec in chosen:
        try:
            figures.check(spec, known)
        except ValueError as error:
            raise Refused(f"--figure: {error}") from None


def unwritable(error: OSError, path: Path) -> Refused:
    """The refusal of a file that could not be written, with the remedy."""
    return Refused(writing.trouble(error, path, "name a directory where you may write"))


def ended_last() -> Path:
    """The experiment in results/ that ended last; where none has ended, the experiment that began last.

    Refused where there is none that can be read.
    """
    found: dict[Path, tuple[bool, str, int, Path]] = {}
    unreadable = None
    for path in sorted(RESULTS.glob(f"*/{DOCUMENT}")):
        try:
            document = load.experiment(path.parent).document
        except load.LoadError as error:
            unreadable = error
            continue
        # The document tells whole seconds; it is written for the last time at the end.
        moment = document.ended or document.started
        found[path.parent] = (document.ended is not None, moment, path.stat().st_mtime_ns, path)
    if not found:
        makes_one = command("make run SCENARIO=parallel-streams", "ewan run first")
        empty = f"there is no experiment in {RESULTS}/: {makes_one} makes one"
        raise Refused(str(unreadable or empty))
    return max(found, key=lambda directory: found[directory])


class ListedExperiment(codec.Struct, omit_defaults=False):
    """An experiment as a row of `ewan exp list`. `started`: to the minute, in UTC."""

    directory: str
    status: State | experiment_list.NotReadable
    scenario: str
    clock: str
    runs: str
    disturbed: str
    verified: str
    result: str
    name: str
    tags: tuple[str, ...]
    note: str
    started: str


@click.command("runs")
@click.option(
    "--tag", "tags", metavar="TAG", multiple=True, help="experiments with this tag; several: with all of them"
)
@click.option("--scenario", metavar="NAME", help="experiments of this scenario")
@click.option("--since", metavar="2d|DAY", help='experiments that began since then: "2d", "3h", "2026-01-31" (UTC)')
@click.option(
    "--status", type=click.Choice([*get_args(State), experiment_list.NOT_READABLE]), help="experiments in this state"
)
@json_option(lambda: list[ListedExperiment])
@guarded
@pass_context
def runs_command(
    context: Context,
    tags: tuple[str, ...],
    scenario: str | None,
    since: str | None,
    status: str | None,
    as_json: bool,
) -> None:
    """List the experiments in results/ with their time, scenario, state, verification and result.

    \b
    ewan exp list
    ewan exp list --tag satellite --since 2d --status complete
    """
    try:
        moment = None if since is None else experiment_list.since(since, datetime.now(UTC))
    except ValueError as error:
        raise Refused(str(error)) from None
    wanted = experiment_list.RunFilter(tags, scenario, moment, status)
    places = sorted(path for path in RESULTS.glob("[!.]*") if path.is_dir())
    every = [experiment_list.describe(path) for path in places if (path / DOCUMENT).exists()]
    rows = [row for row in every if wanted.takes(row)]
    if as_json:
        shown = [name for name in ListedExperiment.__struct_fields__ if name != "started"]
        context.reporter.emit(
            [ListedExperiment(**{key: getattr(row, key) for key in shown}, started=row.started) for row in rows]
        )
        return
    if rows:
        context.reporter.console.print(_experiments(rows))
    if words := _others(every, rows, wanted, len(places) - len(every)):
        context.reporter.messages.print(words, style="dim", soft_wrap=True, markup=False)


def _experiments(rows: Sequence[experiment_list.ExperimentRow]) -> Sheet:
    """A table; names and tags have columns where any experiment has some. A directory is there to be copied."""
    columns = {
        "directory": [row.directory for row in rows],
        "clock": [row.clock for row in rows],
        "runs": [row.runs for row in rows],
        "status": [row.status + f", {row.disturbed} disturbed" * (row.disturbed > "0") for row in rows],
        "verified": [row.verified for row in rows],
        "started (UTC)": [row.started for row in rows],
        "result": [row.result for row in rows],
        "name": [escape(row.name) for row in rows],
        "tags": [" ".join(row.tags) for row in rows],
    }
    there = {name: cells for name, cells in columns.items() if any(cells)}
    lines = list(zip(*there.values(), strict=True))
    return Sheet("Experiments", list(there), lines, keys=0, whole=frozenset({"directory", "started (UTC)"}))


def _others(
    every: Sequence[experiment_list.ExperimentRow],
    rows: Sequence[experiment_list.ExperimentRow],
    wanted: experiment_list.RunFilter,
    others: int,
) -> str:
    """A line about the directories and experiments that the listed rows leave out."""
    words = (
        f"{others} other director{'y' if others == 1 else 'ies'}: labs, verifications, measurements" if others else ""
    )
    if wanted != experiment_list.RunFilter():
        said = f"{len(rows)} of {len(every)} experiments in {RESULTS}/ are so"
        unknown = [tag for tag in wanted.tags if tag not in experiment_list.tags(every)]
        has = ", ".join(experiment_list.tags(every)) or "none"
        return f"{said}; no experiment has the tag {unknown[0]}: there are: {has}" if unknown else said
    return words if every else f"no experiments in {RESULTS}/" + (f", {words}" if words else "")
