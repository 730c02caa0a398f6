"""A repetition beside its original: do they differ at all (virtual clock), or beyond noise (live)?

In: the directories of two experiments. Out: findings in words. In the virtual clock every table and every record of a
run is the same to the byte, so the first that is not is named. Live, each metric of each point is compared over its
seeds by Welch's test (B. L. Welch, "The generalization of Student's problem when several different population
variances are involved", Biometrika 34, 1947), at one percent for all comparisons together (Bonferroni); a single run
has no spread to go by, so there a stated tolerance decides, for metrics that have a scale of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.stop_rule import point_of
from ewan.labs import plan as plans
from ewan.labs.base import codec
from ewan.labs.base.units.shown import written
from ewan.labs.record import schedule as schedules
from ewan.labs.record import tables
from ewan.labs.record.experiment import Entry, ExperimentDocument, hidden
from ewan.labs.record.quantities import metric_of
from ewan.labs.record.summary import Summary
from ewan.labs.record.traffic import TrafficRequest
from ewan.labs.runtime import program as programs

SIGNIFICANCE = 0.01
SINGLE_RUNS_SHARE = 0.1
"""The difference between one run of a metric and another, as a share of the larger, up to which they count as the
same."""
# Of the machine, not of the experiment.
NOT_COMPARED = ("wall.json", "console.log", "progress")
SOURCES = (".csv",)
DOCUMENTS: dict[str, Callable[[bytes], object]] = {
    "plan.json": plans.from_json,
    "program.json": lambda text: programs.from_json(text, 0),
    "schedule.json": schedules.from_json,
    "traffic/request.json": lambda text: codec.decode(TrafficRequest, text, "request"),
}
"""Documents of a run that are compared by their values, not by their bytes."""

Welch = Callable[[Sequence[float], Sequence[float], float], tuple[float, float, float]]
Verdict = Literal["same", "within noise", "different", "shown"]


@dataclass(frozen=True, slots=True)
class RerunComparison:
    """One comparison: its subject, both values in words, and the verdict with its reason."""

    what: str
    before: str
    now: str
    verdict: Verdict
    why: str = ""


def virtual(before: Experiment, now: Experiment) -> list[RerunComparison]:
    """One finding for each run; before them, where results differ, those for another kernel or binary."""
    runs = [_run(before, now, entry) for entry in before.runs]
    if not any(each.verdict == "different" for each in runs):
        return runs
    return [*others(before.document, now.document), *runs]


def _run(before: Experiment, now: Experiment, entry: Entry) -> RerunComparison:
    what = f"run {entry.number} ({entry.name})"
    if entry.status != "complete":
        return RerunComparison(what, entry.status, "", "shown", "the original has no results of it")
    differing = first_difference(before.place(entry), now.place(entry))
    return RerunComparison(what, "", differing or "", "different" if differing else "same")


def others(first: ExperimentDocument, second: ExperimentDocument) -> Iterator[RerunComparison]:
    """The kernel and the binary that are not those of the original; of the virtual clock, whose results they decide."""
    if first.clock != "virtual":
        return
    for words, old, new in (
        ("virtual kernel", first.kernel_sha256, second.kernel_sha256),
        ("node binary", first.binary_sha256, second.binary_sha256),
    ):
        if old != new:
            why = "another one: its results may be others"
            yield RerunComparison(words, str(old)[:12], str(new)[:12], "shown", why)


def first_difference(before: Path, now: Path) -> str | None:
    """The first file of a run that differs, and where, in words; None: none does."""
    left, right = (dict(results(place)) for place in (before, now))
    for name in sorted(left.keys() | right.keys()):
        if name not in left or name not in right:
            return f"{name} is only in {'the original' if name in left else 'the repetition'}"
        if not _says_the_same(name, left[name].read_bytes(), right[name].read_bytes()):
            where = cell(left[name], right[name]) if name.endswith(".parquet") else line(left[name], right[name])
            return f"{name}: {where}"
    return None


def _says_the_same(name: str, before: bytes, now: bytes) -> bool:
    """Return whether two files have the same bytes or, where a version writes the keys of a document in another order
    or leaves out those that have their defaults, the same values."""
    if before == now:
        return True
    read = DOCUMENTS.get(name)
    try:
        return read is not None and read(before) == read(now)
    except ValueError:
        return False


def results(place: Path) -> Iterator[tuple[str, Path]]:
    """Files of a run that repeat, with their names; sources of tables are compared as tables."""
    for path in place.rglob("*"):
        source = path.suffix in SOURCES and "commands" not in path.relative_to(place).parts
        name = path.relative_to(place)
        if path.is_file() and path.name not in NOT_COMPARED and not source and not hidden(name):
            yield name.as_posix(), path


def cell(before: Path, now: Path) -> str:
    """The first row and column in which two tables differ."""
    left, right = pl.read_parquet(before), pl.read_parquet(now)
    if left.schema != right.schema:
        return "its columns differ"
    for column in left.columns:
        pairs = zip(left[column].to_list(), right[column].to_list(), strict=False)
        for row, (old, new) in enumerate(pairs):
            if old != new:
                return f"row {row}, {column}: {_amount(old, column)} before, {_amount(new, column)} now"
    if left.height != right.height:
        return f"{left.height} rows before, {right.height} now"
    return "its rows are the same, its bytes are not"


def _amount(value: object, column: str) -> str:
    return "none" if value is None else f"{value} {tables.unit(column)}".strip()


def line(before: Path, now: Path) -> str:
    """The first line in which two text files differ."""
    left, right = (path.read_text(errors="replace").splitlines() for path in (before, now))
    for number, (old, new) in enumerate(zip(left, right, strict=False), 1):
        if old != new:
            return f"line {number}: {old.strip()[:60]} before, {new.strip()[:60]} now"
    return f"{len(left)} lines before, {len(right)} now"


def live(before: Summary, now: Summary, welch: Welch) -> list[RerunComparison]:
    """One finding for each metric of each point that both have; `welch`: see `Parts`."""
    pairs = list(_pairs(before, now))
    level = SIGNIFICANCE / max(sum(len(old) > 1 and len(new) > 1 for _, _, _, old, new in pairs), 1)
    result = []
    for point, metric, unit, old, new in pairs:
        verdict, why = judge(metric, old, new, level, welch, unit)
        what = f"{point}: {metric}" if point else metric
        result.append(RerunComparison(what, _mean(old, unit), _mean(new, unit), verdict, why))
    return result


def judge(
    metric: str, old: Sequence[float], new: Sequence[float], level: float, welch: Welch, unit: str = ""
) -> tuple[Verdict, str]:
    """Two samples of a metric in `unit`; `level`: of significance of this one comparison."""
    if sorted(old) == sorted(new):
        return "same", ""
    first, second = math.fsum(old) / len(old), math.fsum(new) / len(new)
    share = abs(first - second) / max(abs(first), abs(second))
    if len(old) > 1 and len(new) > 1 and (len(set(old)) > 1 or len(set(new)) > 1):
        p, expanded, factor = welch(old, new, 1 - level)
        apart = abs(first - second)
        width = f"apart by {written(apart, unit)}, U = {written(expanded, unit)} (k = {factor:.2g})"
        why = f"{width if apart else 'equal means'}; Welch: p = {p:.2g}, different below {level:.2g}"
        return ("different" if p < level else "within noise"), why
    known = metric_of(metric)
    if known is None or not known.comparable:
        return "shown", "one run each: it has no scale to judge a difference by"
    why = f"one run each: {share:.1%} apart, different above {SINGLE_RUNS_SHARE:.0%}"
    return ("different" if share > SINGLE_RUNS_SHARE else "within noise"), why


def _pairs(before: Summary, now: Summary) -> Iterator[tuple[str, str, str, list[float], list[float]]]:
    """For each metric of each point that both have: the point in words (empty where there is one point), metric, unit,
    values."""
    old, new = _samples(before), _samples(now)
    many = len({point for point, _ in old}) > 1
    for point, metric in old:
        if (point, metric) in new:
            words = " ".join(f"{name}={value}" for name, value in point) if many else ""
            (unit, first), (_, second) = old[point, metric], new[point, metric]
            yield words, metric, unit, first, second


def _samples(summary: Summary) -> dict[tuple[Any, str], tuple[str, list[float]]]:
    """The unit, and the values of the runs, by point and metric."""
    result: dict[tuple[Any, str], tuple[str, list[float]]] = {}
    for run in summary.runs:
        for metric, measured in run.metrics.items():
            if measured.value is not None:
                key = point_of(run.parameters), metric
                result.setdefault(key, (measured.unit, []))[1].append(measured.value)
    return result


def _mean(values: Sequence[float], unit: str) -> str:
    return written(math.fsum(values) / len(values), unit)
