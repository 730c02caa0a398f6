"""The data of experiments that a page shows: one of them, its certificates, a figure of it, two beside each other.

In: directories, words of a figure. Out: plain data for JSON, made by the functions of `ewan results report`,
`certificate`, `plot` and `compare`. It reads tables and draws, in a process of its own (`reader.py`)."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ewan.analysis import circumstances, disturbance_overlap, load, report, report_tables, single_figure, summary
from ewan.analysis.compare import both, page
from ewan.analysis.compare.descriptions import DescriptionDifference
from ewan.analysis.figures import custom
from ewan.analysis.figures.style import STYLES
from ewan.analysis.rows import MOST_CERTIFICATES, few, left_out
from ewan.calibration import report as certificates
from ewan.extras.studio.server.answers import (
    CertificateLine,
    CertificateSheet,
    Difference,
    DrawnFigure,
    Experiment,
    ExperimentComparison,
    Side,
    Table,
)
from ewan.labs import rundir
from ewan.labs.base import codec
from ewan.labs.base.documents import DocumentError
from ewan.labs.record import figures, host_drops, quantities, uncounted_traffic
from ewan.labs.record import summary as summaries
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.summary import Summary

MOST_RUNS = 500
NOTHING = Summary(status="", confidence=0.0, normalise=None, runs=(), points=(), comparisons=(), beside=())
"""The summary of an experiment that has none yet."""


def about(directory: str) -> Experiment:
    """An experiment, with only the parts of its tables that summary.json repeats; LabError."""
    place = Path(directory)
    experiment = load.experiment(place)
    document = experiment.document
    found = _summary(place)
    known = found or NOTHING
    every = report.runs(experiment, known)
    shown = few(every, MOST_RUNS, lambda row: row.status != "complete" or bool(row.error))
    scenario = place / "scenario.yaml"
    labs, refused = experiment.by_certificate, {entry.number for entry in document.runs if entry.verified is False}
    certified = few(list(labs), MOST_CERTIFICATES, lambda name: not refused.isdisjoint(labs[name]))
    seen, more_seen = disturbance_overlap.rows(known.runs)
    entries = {entry.number: entry for entry in document.runs}
    runs: list[Any] = [
        {
            **row._asdict(),
            "verified": entries[row.number].verified,
            "measured": experiment.by_number[row.number].measured,
        }
        for row in shown
    ]
    disturbances: list[Any] = [
        {"run": row.run, "time": row.time, "words": row.words, "marks": row.marks} for row in seen
    ]
    comparisons: list[Any] = report_tables.comparisons(experiment, known)
    return {
        "name": place.name,
        "directory": directory,
        "title": document.title or document.scenario,
        "called": document.name,
        "tags": document.tags,
        "note": document.note,
        "scenario": document.scenario,
        "about": [part for part in re.split(r"\n\s*\n", document.about.strip()) if part],
        "source": document.source,
        "status": experiment.status,
        "clock": document.clock,
        "warnings": [
            *report.warnings(experiment),
            *filter(None, [disturbance_overlap.warning(known.disturbed)]),
            *(f"{line}." for line in [*uncounted_traffic.of_runs(known.runs), *host_drops.of_runs(known.runs)]),
        ],
        "so_far": experiment.so_far,
        "facts": {key: word for key, word in circumstances.facts(experiment).items() if key not in LABELS},
        "host": circumstances.host(document.host),
        "parameters": circumstances.parameters(experiment),
        "varied": experiment.varied,
        "values": {name: list(map(str, each)) for name, each in custom.values(experiment).items()},
        "metrics": quantities.ordered({name: None for point in known.points for name in point.metrics}),
        "runs": runs,
        "few_runs": left_out(len(shown), len(every), "runs", "ewan results export --csv DIR writes all of them."),
        "certificates": [_labelled(experiment, name, labs[name]) for name in certified],
        "more_certificates": len(labs) - len(certified),
        "disturbances": disturbances,
        "more_disturbances": more_seen,
        "watched": known.disturbed is not None,
        "tables": _tables(experiment, known) if found else [],
        "comparisons": comparisons,
        "figures": sorted(path.stem for path in (place / "figures").glob("*.svg")),
        "asked": [figure.line for figure in summary.wishes(experiment)],
        "report": (place / "report.html").is_file(),
        "text": scenario.read_text(errors="replace") if scenario.exists() else "",
    }


LABELS = ("name", "tags", "note")
"""Facts that the page shows by fields that can be changed."""


def _summary(place: Path) -> Summary | None:
    """summary.json; None where there is none that this version reads: the report makes it."""
    try:
        return summaries.read(place)
    except (OSError, DocumentError):
        return None


def _labelled(experiment: load.ExperimentResults, name: str, numbers: Sequence[int]) -> CertificateLine:
    """A certificate in a line; an unreadable one has a line that shows that."""
    known: CertificateLine = {"id": Path(name).stem, "runs": list(numbers), "passed": None, "words": "there is none"}
    try:
        found = experiment.certificate(name)
    except load.LoadError as error:
        return {**known, "words": str(error)}
    if found is None:
        return known
    return {**known, "passed": found.passed, "words": certificates.summary(found)}


def _tables(experiment: load.ExperimentResults, found: Summary) -> list[Table]:
    shown = codec.replace(found, points=tuple(few(found.points)))
    return [
        {
            "title": table.title,
            "columns": [*experiment.varied, "seeds", *table.columns],
            "rows": [[*values, seeds, *cells] for values, seeds, cells in table.rows],
        }
        for table in report.tables(experiment, shown)
    ]


def certificate(directory: str, name: str) -> CertificateSheet:
    """The certificate of a lab of an experiment, as `ewan lab certificate` prints it; LoadError."""
    found = load.experiment(Path(directory)).certificate(f"certificates/{name}.json")
    if found is None:
        raise load.LoadError(f"{directory}: has no certificate {name}")
    return {
        "id": name,
        "lab": found.lab,
        "passed": found.passed,
        "policy": found.policy,
        "words": certificates.summary(found),
        "circumstances": certificates.circumstances(found),
        "advice": certificates.advice(found),
        "columns": list(certificates.HEADINGS),
        "rows": [list(certificates.cells(row)) for row in found.rows],
    }


def figure(directory: str, line: str, style: str = "page", kind: str = "svg", beside: str | None = None) -> DrawnFigure:
    """A figure as `ewan results plot` draws it; `line`: docs/how-to/experiments/figures.md. ValueError for a line that
    is none, or cannot be drawn."""
    spec = figures.parse(line)
    other = None if beside is None else Path(beside)
    _, drawing = single_figure.drawn(Path(directory), spec, STYLES[style], [kind], other)
    rundir.give_back(Path(directory))
    return {
        "line": spec.line,
        "spec": spec,
        "name": drawing.name,
        "title": drawing.title,
        "caption": drawing.caption,
        "svg": drawing.svg,
        "shown": report.alone(drawing.svg),
        "csv": drawing.csv,
        "files": {name: base64.b64encode(content).decode() for name, content in drawing.files.items()},
        "command": command(directory, spec, style, kind, beside),
    }


def command(directory: str, spec: FigureSpec, style: str, kind: str, beside: str | None = None) -> str:
    """The command that makes the same figure at a terminal, its CSV beside it."""
    size = [] if style == "page" else ["--style", style]
    other = [] if beside is None else ["--beside", beside]
    return shlex.join(
        ["ewan", "results", "plot", directory, spec.line, *other, *size, "--output", f"{spec.file}.{kind}"]
    )


def compared(first: str, second: str, wanted: Sequence[str] = ()) -> ExperimentComparison:
    """The differences of two experiments, as `ewan exp compare` prints them; LoadError, ValueError for a metric that is
    none."""
    chosen = [str(quantities.parse(each)) for each in wanted]
    experiments = [load.experiment(Path(each)) for each in (first, second)]
    found = both.compared(experiments[0], experiments[1], chosen)
    rows: list[Any] = [page.row(found, each) for each in found.rows]
    return {
        "parameters": _differences(found.parameters),
        "labs": _differences(found.labs),
        "certificates": _differences(found.certificates),
        "circumstances": _differences(found.circumstances),
        "scenarios": list(found.text),
        "sides": (_side(experiments[0]), _side(experiments[1])),
        "rows": rows,
        "lines": [each for each in both.lines(found) if each not in found.text],
        "metrics": list(dict.fromkeys(str(row["metric"]) for row in found.rows)),
        "command": shlex.join(["ewan", "exp", "compare", first, second]),
    }


def _differences(rows: Sequence[DescriptionDifference]) -> list[Difference]:
    return [{"what": each.what, "first": each.first, "second": each.second} for each in rows]


def _side(experiment: load.ExperimentResults) -> Side:
    document = experiment.document
    return {
        "name": experiment.directory.name,
        "title": document.name or document.title or document.scenario,
        "scenario": document.scenario,
        "status": experiment.status,
        "clock": document.clock,
        "so_far": experiment.so_far,
        "started": circumstances.when(document.started),
        "warnings": report.warnings(experiment),
        "varied": experiment.varied,
        "figures": [figure.line for figure in summary.wishes(experiment)],
    }


ASKED: dict[str, Callable[..., object]] = {
    "about": about,
    "certificate": certificate,
    "figure": figure,
    "compared": compared,
}
"""The questions that the reader answers, by name."""
