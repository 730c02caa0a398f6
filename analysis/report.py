"""The report of an experiment: one HTML file with everything in it, and each figure as SVG and CSV beside it.

In: an experiment's directory with its summary (made when it is not there). Out: report.html, which needs no server, no
network and no script, in light and dark, and prints; figures/*.svg and *.csv.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from ewan.analysis import circumstances, disturbance_overlap, figures, load, metric_tables, report_tables, summary
from ewan.analysis.figures import style
from ewan.analysis.figures.happenings import words_of
from ewan.analysis.figures.request import FigureError
from ewan.analysis.figures.style import COLOURS, FAINT, INK, PAGE, PAPER, Drawing, Style
from ewan.analysis.metric_tables import key_results
from ewan.analysis.rows import MOST_CERTIFICATES, few, left_out
from ewan.labs.base import codec, writing
from ewan.labs.base.units.shown import NONE, interval_in, percent, typographic, with_interval, written
from ewan.labs.record import Certificate, host_drops, quantities, uncounted_traffic
from ewan.labs.record.experiment import Status
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.scenario_requests import Parameter
from ewan.labs.record.summary import PointSummary, PublishedBeside, Summary

ALL_MATCHED = 0.999
"""The share of captured packets that are matched from which on the others are not mentioned."""

TEMPLATES = Path(__file__).resolve().parent / "templates"
STATES = {
    "complete": "",
    "running": "This experiment was not at its end when the report was made, or was ended from outside.",
    "incomplete": "This experiment is incomplete: it was interrupted, or runs failed. What was measured is below.",
    "refused": "This experiment was refused: the lab did not do what its description says. Nothing was run.",
}
POINTS_ARE = "all are in summary.json, and ewan results export --csv DIR writes them as points.csv."
COMPARISONS_ARE = "all are in summary.json."
RUNS_ARE = (
    "first of all those that are not complete; all are in summary.json, "
    "and ewan results export --csv DIR writes runs.csv."
)
LONGEST_EMBEDDED = 120_000
"""Bytes of a figure's file up to which the page carries it; of a longer one it names the file."""


@dataclass(frozen=True)
class Choice:
    """Options for figures: those beside the usual ones, their style, and files beside SVG and CSV."""

    figures: tuple[FigureSpec, ...] = ()
    look: Style = PAGE
    kinds: tuple[str, ...] = ()


USUAL = Choice()


@dataclass(frozen=True)
class ReportFiles:
    """The page, and the files of figures beside SVG and CSV that were asked for."""

    page: Path
    others: tuple[Path, ...]


def write(directory: Path, choice: Choice = USUAL) -> Path:
    """The path of report.html; errors as of `write_files`."""
    return write_files(directory, choice).page


def write_files(directory: Path, choice: Choice) -> ReportFiles:
    """Write the report and its figures; LoadError where the directory is none of an experiment, or is damaged.

    FigureError for a figure of `choice` that cannot be drawn; one of the scenario is named in the report instead.
    """
    experiment = load.experiment(directory)
    found = summary.found(directory)
    own = {spec.line: spec for spec in [*summary.wishes(experiment), *choice.figures]}
    drawings, refused = figures.draw(experiment, found, own.values(), choice.look, choice.kinds)
    for figure in choice.figures:
        if figure.line in refused:
            raise FigureError(refused[figure.line])
    place = directory / "figures"
    place.mkdir(exist_ok=True)
    others = []
    for drawing in drawings:
        writing.write(place / f"{drawing.name}.svg", drawing.svg)
        writing.write(place / f"{drawing.name}.csv", drawing.csv)
        for kind, content in drawing.files.items():
            others.append(place / f"{drawing.name}.{kind}")
            writing.write(others[-1], content)
    summary.keep_asked(directory, choice.figures)
    page = directory / "report.html"
    writing.write(page, render(experiment, found, drawings, list(dict.fromkeys(refused.values()))))
    return ReportFiles(page, tuple(others))


def render(
    experiment: load.ExperimentResults,
    found: Summary,
    drawings: Sequence[Drawing],
    refused: Sequence[str] = (),
) -> str:
    """The page: HTML with all figures in it. `refused`: why figures of the scenario are not."""
    document = experiment.document
    points = few(metric_tables.in_order(experiment, found.points))
    shown = codec.replace(
        found,
        points=tuple(points),
        comparisons=tuple(few(found.comparisons)),
        beside=tuple(few(found.beside)),
    )
    certified, every_run = certificates(experiment), runs(experiment, found)
    run_rows = few(every_run, first=lambda row: row.status != "complete" or bool(row.error))
    scenario = experiment.directory / "scenario.yaml"
    facts = circumstances.facts(experiment)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            title=document.title or document.scenario,
            scenario=document.scenario,
            name=experiment.directory.name,
            about=[part for part in re.split(r"\n\s*\n", experiment.document.about.strip()) if part],
            source=experiment.document.source,
            status=experiment.status,
            warnings=[
                *warnings(experiment),
                *(refusal(why) for why in refused),
                *filter(None, [disturbance_overlap.warning(found.disturbed)]),
                *unmatched(found),
                *unmade(experiment),
            ],
            so_far=experiment.so_far,
            facts=facts,
            brief={
                "runs": f"{experiment.so_far}; {circumstances.extent(experiment)}",
                "clock": facts["clock"],
                "links": verified(experiment),
            },
            key_results=key_results(experiment, found),
            host=circumstances.hosts(document.host, certified.values()),
            stages=circumstances.stages(document.stages),
            parameters=circumstances.parameters(experiment),
            certificates=[
                circumstances.certificate(each, experiment.by_certificate[name]) for name, each in certified.items()
            ],
            other_certificates=len(experiment.by_certificate) - len(certified),
            confidence=written(found.confidence, "share"),
            several=any(point.seeds > 1 for point in found.points),
            tables=tables(experiment, shown),
            ratios=ratios(experiment, shown),
            steps=report_tables.steps(experiment, shown),
            comparisons=report_tables.comparisons(experiment, shown),
            few_points=left_out(len(points), len(found.points), "points", POINTS_ARE),
            few_comparisons=left_out(len(shown.comparisons), len(found.comparisons), "comparisons", COMPARISONS_ARE),
            kinds=report_tables.kinds(found),
            beyond=report_tables.BEYOND if any(point.beyond for point in found.points) else "",
            more_seeds=report_tables.more_seeds(experiment, found),
            beside=[beside(experiment, entry) for entry in shown.beside],
            watched=found.disturbed is not None,
            disturbances=disturbance_overlap.rows(found.runs),
            touched=bool(disturbance_overlap.warning(found.disturbed)),
            mark=disturbance_overlap.MARK,
            dropped=host_drops.of_runs(found.runs),
            uncounted=uncounted_traffic.of_runs(found.runs),
            figures=[figure(number, drawing) for number, drawing in enumerate(drawings, 1)],
            runs=run_rows,
            few_runs=left_out(len(run_rows), len(every_run), "runs", RUNS_ARE),
            varied=experiment.varied,
            metrics={
                name: each.meaning
                for name in quantities.ordered({name: None for point in found.points for name in point.metrics})
                if (each := quantities.metric_of(name))
            },
            text=scenario.read_text(errors="replace") if scenario.exists() else "",
        )
    )


def refusal(why: str) -> str:
    """The warning of a figure that is not drawn, or of all where none can be drawn here."""
    return (
        f"{why[:1].upper()}{why[1:]}." if why == style.missing() else f"A figure of the scenario is not drawn: {why}."
    )


def unmatched(found: Summary) -> list[str]:
    """A warning where one-way delays were measured for a part of the captured packets only; else nothing."""
    known = {run.number: run.metrics["matched packets"].value for run in found.runs if "matched packets" in run.metrics}
    share, number = min(((share, number) for number, share in known.items() if share is not None), default=(1, 0))
    if share >= ALL_MATCHED:
        return []
    return [
        "One-way delays and reordering are of the captured packets that are known again at both ends: "
        f"{written(share, 'share', 3)} of those that came in run {number}, which has the least. Others left "
        "before the capture, or nothing tells them apart."
    ]


def certificates(experiment: load.ExperimentResults) -> dict[str, Certificate]:
    """The certificates of as many labs as a reader looks at, failed ones first, by path. LoadError where one is
    damaged."""
    failed = _failed(experiment)
    names = few(list(experiment.by_certificate), MOST_CERTIFICATES, lambda name: name in failed)
    read = {name: experiment.certificate(name) for name in names}
    return {name: each for name, each in read.items() if each is not None}


def verified(experiment: load.ExperimentResults) -> str:
    """`3 labs verified before traffic ran`, or how many were not; a lab is one that has a certificate."""
    labs, failed = len(experiment.by_certificate), len(_failed(experiment))
    if not labs:
        return "not measured: there is no certificate"
    several = f"{labs} labs" if labs > 1 else "the lab"
    if failed:
        return f"{failed} of {several} NOT verified" if labs > 1 else "NOT verified"
    return f"{several} verified before traffic ran"


def _failed(experiment: load.ExperimentResults) -> set[str]:
    """The certificates of labs that did not pass."""
    numbers = {run.number for run in experiment.document.runs if run.verified is False}
    return {name for name, runs in experiment.by_certificate.items() if numbers & set(runs)}


def environment() -> jinja2.Environment:
    """The environment that fills the templates of pages."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)


def warnings(experiment: load.ExperimentResults) -> list[str]:
    """The warnings that stand before all numbers of the report."""
    said = [STATES[experiment.status]]
    passed = all(run.verified for run in experiment.document.runs) and experiment.runs
    if experiment.document.unverified and not passed:
        said.append("The lab was not verified, or was outside its tolerances: --unverified was given.")
    failed = [run for run in experiment.runs if run.status != "complete"]
    unread = [run for run in experiment.runs if run.status == "complete" and not run.measured]
    if unread:
        said.append(
            f"Complete runs without tables yet, and not in the results: {len(unread)}; "
            f"ewan exp resume {experiment.directory} goes on."
        )
    if failed and experiment.status != "refused":
        said.append(
            f"{len(failed)} of {len(experiment.runs)} runs are not complete. Points are made of complete runs; "
            "where a point has none, of what there is."
        )
    return [words for words in said if words]


def unmade(experiment: load.ExperimentResults) -> list[str]:
    """A warning for each change of a link that waited for a state which did not come."""
    complete = [run for run in experiment.runs if run.status == "complete"]
    waiting = ({words_of(each) for each in run.events if each.when and each.applied_ns is None} for run in complete)
    return [
        f"Of {len(complete)} complete runs, {times} did not come to the state for which a change waits: {words}."
        for words, times in sorted(Counter(words for those in waiting for words in those).items())
    ]


class ReportTable(NamedTuple):
    """A row for each point: the values of the varied parameters, the seeds, a cell of each column."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[Sequence[str], str, Sequence[str]]]


class RatioTables(NamedTuple):
    """Tables of ratios to the reference, where the parameter `by` is `to`."""

    by: str
    to: Parameter
    tables: Sequence[ReportTable]


class ReportRun(NamedTuple):
    """A run in the report's table, in words."""

    number: int
    point: Sequence[str]
    seed: int
    status: Status
    error: str
    disturbed: str
    bottleneck: str
    certificate: str


class ReportFigure(NamedTuple):
    """A drawing as the page has it. `links`: to its files, by their kinds."""

    number: int
    name: str
    title: str
    caption: str
    svg: Markup
    links: Mapping[str, str]


def tables(experiment: load.ExperimentResults, found: Summary) -> list[ReportTable]:
    """Metrics with intervals: those that the scenario names, then a table a group; a row a point."""
    built = []
    for table in metric_tables.tables(experiment, found):
        divisors = {column.name: column.divisor for column in table.columns}

        def cell(point: PointSummary, name: str, divisors: Mapping[str, float] = divisors) -> str:
            value = point.metrics.get(name)
            text = NONE if value is None else interval_in(divisors[name], value.mean, value.low, value.high)
            return typographic(text) + report_tables.mark(point, name)

        heads = [f"{column.name} ({column.unit})" if column.unit else column.name for column in table.columns]
        rows = _rows(experiment, found, found.points, list(divisors), cell)
        built.append(ReportTable(table.title, heads, rows))
    return built


def _rows(
    experiment: load.ExperimentResults,
    found: Summary,
    points: Sequence[PointSummary],
    columns: Sequence[str],
    cell: Callable[[PointSummary, str], str],
) -> list[tuple[Sequence[str], str, Sequence[str]]]:
    """A row for each point: the varied parameters, the seeds, a cell for each metric."""
    rows: list[tuple[Sequence[str], str, Sequence[str]]] = []
    for point in points:
        touched = bool(disturbance_overlap.footnote(point.runs, found))
        seeds = f"{point.seeds}\u00a0{disturbance_overlap.MARK}" if touched else str(point.seeds)
        rows.append((metric_tables.values_of(experiment, point), seeds, [cell(point, name) for name in columns]))
    return rows


def _parameter(value: Parameter | None) -> str:
    return "" if value in load.NOTHING else str(value)


def ratios(experiment: load.ExperimentResults, found: Summary) -> RatioTables | None:
    """Metrics divided by the reference's, in tables as `tables` has them."""
    points = [point for point in found.points if point.normalised]
    if not points or found.normalise is None:
        return None
    there = [
        name
        for name in dict.fromkeys(name for point in points for name in point.normalised)
        if quantities.parse(name).metric.normalised
    ]

    def cell(point: PointSummary, name: str) -> str:
        ratio = point.normalised.get(name)
        if ratio is None:
            return NONE
        return typographic(with_interval(ratio.ratio, ratio.low, ratio.high, "ratio"))

    built = [
        ReportTable(title, columns, _rows(experiment, found, points, columns, cell))
        for title, columns in metric_tables.groups(experiment, there)
    ]
    return RatioTables(found.normalise.by, found.normalise.to, built)


def beside(experiment: load.ExperimentResults, entry: PublishedBeside) -> dict[str, str]:
    """A paper's number and ours; of a value that is itself a difference, by how many points ours is apart."""
    unit, than = entry.unit, entry.than
    own = {name: entry.parameters[name] for name in experiment.varied if name in entry.parameters}
    words = ", ".join(f"{name} = {value}" for name, value in (own or entry.when).items())
    difference = typographic(percent(entry.difference))
    metric = entry.metric
    if than:
        metric += ", more than at " + ", ".join(f"{name} = {value}" for name, value in than.items())
        difference = difference.replace(" %", " points")
    return {
        "source": entry.source,
        "when": words,
        "metric": metric + (", ratio to the reference" if entry.normalised else ""),
        "paper": typographic(written(entry.paper, unit, 6)),
        "here": typographic(with_interval(entry.here, entry.low, entry.high, unit)),
        "difference": difference,
        "note": entry.note,
    }


def runs(experiment: load.ExperimentResults, found: Summary) -> list[ReportRun]:
    """Every run, measured or not."""
    known = {run.number: run for run in found.runs}
    rows = []
    for run in experiment.runs:
        own = known.get(run.number)
        at, touched = (own.bottleneck, own.disturbed) if own else (None, None)
        rows.append(
            ReportRun(
                number=run.number,
                point=[_parameter(run.parameters.get(name)) for name in experiment.varied],
                seed=run.seed,
                status=run.status,
                error=run.error or "",
                disturbed=disturbance_overlap.in_words(touched) if touched else "",
                bottleneck=f"{at.link} {'→' if at.direction == 'forward' else '←'}" if at else "",
                certificate=Path(run.certificate).stem if run.certificate else "none",
            )
        )
    return rows


def figure(number: int, drawing: Drawing) -> ReportFigure:
    """A drawing for the page: in the page's own colours, and its files as links that work wherever the page is."""
    links = {}
    for kind, text, mime in (("svg", drawing.svg, "image/svg+xml"), ("csv", drawing.csv, "text/csv")):
        embedded = f"data:{mime};base64," + base64.b64encode(text.encode()).decode()
        links[kind] = embedded if len(text) <= LONGEST_EMBEDDED else f"figures/{drawing.name}.{kind}"
    svg = Markup(inline(drawing.svg, f"f{number}"))
    return ReportFigure(number, drawing.name, drawing.title, drawing.caption, svg, links)


def inline(svg: str, prefix: str) -> str:
    """SVG for use inside HTML: no prolog, names of its own, and colours as the page's variables."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", body)
    variables = {INK: "--ink", FAINT: "--grid", PAPER: "--paper"}
    variables |= {colour: f"--series-{number}" for number, colour in enumerate(COLOURS, 1)}
    for colour, variable in variables.items():
        body = re.sub(rf": {colour}\b", f": var({variable})", body, flags=re.IGNORECASE)
    return body


def alone(svg: str) -> str:
    """SVG for use as a picture of a page, which can be light or dark: it brings the colours itself."""
    styles = (TEMPLATES / "report.css").read_text()
    colours = styles[: styles.index("* {")]
    head, closed, rest = inline(svg, "p").partition(">")
    return f"{head}{closed}<style>{colours}</style>{rest}"
