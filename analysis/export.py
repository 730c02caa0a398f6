"""An experiment's results for other programs: CSV of points and of runs, Parquet of all tables, a table to keep.

In: an experiment, its summary. Out: text and frames. The head of a column names its unit: seconds, bit/s; shares,
ratios and counts have none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from ewan.analysis import load, summary
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import quantities, tables
from ewan.labs.record import summary as summaries
from ewan.labs.record.columns import COLUMNS
from ewan.labs.record.experiment import checksum
from ewan.labs.record.summary import Summary

Cell = str | int | float | None
BOUNDS = ("low", "high")
REFERENCE = ("metric", "unit", "mean", "low", "high", "runs")
_UNITS = {"ns": "s"}


def points(experiment: load.ExperimentResults, found: Summary) -> str:
    """A line a point: parameters, seeds, the metrics that are more than the links carry; of each metric the mean, the
    interval's ends, of how many runs."""
    names = _parameters(experiment)
    metrics = quantities.ordered({name: None for point in found.points for name in point.metrics})
    heads = [*names, "seeds", "more than the links carry"]
    for metric in metrics:
        heads += [_head(metric), *(_head(metric, bound) for bound in BOUNDS), f"{metric}, runs"]
    rows = []
    for point in found.points:
        row: list[Cell] = [*(point.parameters.get(name) for name in names), point.seeds]
        row.append("; ".join(point.beyond))
        for metric in metrics:
            value = point.metrics.get(metric)
            if value is None:
                row += [None] * (len(BOUNDS) + 2)
            else:
                row += [*(in_seconds(metric, each) for each in (value.mean, value.low, value.high)), value.n]
        rows.append(row)
    return table(heads, rows)


def runs(experiment: load.ExperimentResults, found: Summary) -> str:
    """A line a run, also those without results: number, seed, status, parameters, metrics."""
    names = _parameters(experiment)
    known = {run.number: run.metrics for run in found.runs}
    metrics = quantities.ordered({name: None for values in known.values() for name in values})
    rows = []
    for run in experiment.runs:
        values = known.get(run.number, {})
        own = [in_seconds(metric, values[metric].value) if metric in values else None for metric in metrics]
        rows.append([run.number, run.seed, run.status, *(run.parameters.get(name) for name in names), *own])
    return table(["run", "seed", "status", *names, *map(_head, metrics)], rows)


def frames(experiment: load.ExperimentResults) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each table that has rows, of all runs together: with the run's number, seed and parameters in each row."""
    for table in COLUMNS:
        frame = experiment.frame(table)
        if not frame.is_empty():
            yield table, frame


def parquet(directory: Path, experiment: load.ExperimentResults) -> dict[Path, bytes | str]:
    """A file for each of `frames`."""
    return {directory / f"{table}.parquet": tables.content(frame) for table, frame in frames(experiment)}


def texts(directory: Path, named: Mapping[str, str]) -> dict[Path, bytes | str]:
    """Texts by their names as files of a directory."""
    return {directory / name: text for name, text in named.items()}


def _parameters(experiment: load.ExperimentResults) -> list[str]:
    return list(dict.fromkeys(name for run in experiment.runs for name in run.parameters))


def _head(metric: str, bound: str = "") -> str:
    """`mean goodput, low (bit/s)`."""
    unit = {"ns": "s", "bit/s": "bit/s"}.get(summary.unit(metric))
    return metric + (f", {bound}" if bound else "") + (f" ({unit})" if unit else "")


def in_seconds(metric: str, value: float | None) -> float | None:
    """Times, which are kept in ns, in s; all else as it is."""
    return value / NS_PER_SECOND if value is not None and summary.unit(metric) == "ns" else value


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """CSV with a head."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return text.getvalue()


def reference(experiment: load.ExperimentResults, found: Summary) -> str:
    """A long experiment's result as a small table that is kept with the product: CSV, a line for each point and metric
    that the scenario names; before it, as comments, the command, the version and the archive's SHA-256. LoadError where
    runs are missing, or the archive."""
    document = experiment.document
    if document.status != "complete":
        raise load.LoadError(f"{experiment.directory}: is {document.status}: a reference is of a complete experiment")
    archives = sorted(experiment.directory.glob("*.tar.zst"))
    if len(archives) != 1:
        raise load.LoadError(f"{experiment.directory}: has {len(archives)} archives: a reference names its only one")
    head = {
        "scenario": f"{document.scenario}{f' --size {document.scale}' if document.scale else ''}",
        "command": document.command,
        "started": document.started,
        "commit": document.commit,
        "virtual kernel": document.kernel_sha256,
        "archive": f"{archives[0].name} {checksum(archives[0])}",
    }
    rows = [
        [
            *(point.parameters.get(name) for name in experiment.varied),
            metric,
            _UNITS.get(value.unit, value.unit),
            *(_short(in_seconds(metric, each)) for each in (value.mean, value.low, value.high)),
            value.n,
        ]
        for point in found.points
        for metric in quantities.meant(document.metrics, summaries.names(found.points))
        if (value := point.metrics.get(metric)) is not None
    ]
    lines = [f"# {name}: {value}\n" for name, value in head.items() if value is not None]
    return "".join(lines) + table([*experiment.varied, *REFERENCE], rows)


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
