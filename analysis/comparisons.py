"""Comparisons that `compare:` of a scenario asks for: every other value of a parameter against one, paired by seed.
Pure.

In: the entries, the values of each point by seed. Out: rows with the difference, its interval, the test, p by itself
and by Holm's correction over all of them, an effect size, and the outcome in a word. With `harm`, the difference is
what the reference loses: R. Ware et al., "Beyond Jain's fairness index: setting the bar for the deployment of
congestion control algorithms", HotNets 2019: (solo − with)/solo where more is better, (with − solo)/with where less is;
the reference is solo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from ewan.analysis import differences
from ewan.analysis.differences import Difference
from ewan.analysis.points import BySeed, Point, PointIndex, names, of_seed
from ewan.labs.record import quantities
from ewan.labs.record.metrics import METRICS, USUAL
from ewan.labs.record.scenario_requests import Comparison
from ewan.labs.record.summary import ComparisonRow, DifferenceRow


def of(entries: Sequence[Comparison], by_seed: BySeed, named: Sequence[str], confidence: float) -> list[ComparisonRow]:
    """A row for each entry, point and quantity that both points have. `named`: the scenario's own metrics, for entries
    without any."""
    others = PointIndex(by_seed)
    rows = [
        row
        for entry in entries
        for point in by_seed
        if str(dict(point).get(entry.by, entry.to)) != str(entry.to)
        for row in _rows(entry, point, by_seed, others, entry.metrics or usual(named), confidence)
    ]
    corrected(rows)
    for row in rows:
        row["outcome"] = outcome(row, 1 - confidence, row["better"], harm=row["harm"])
    return rows


def usual(named: Iterable[str]) -> list[str]:
    """The metrics that are compared where an entry names none: those of the scenario, else those that tables show."""
    known = [name for name in named if quantities.metric_of(name)]
    return known or [name for name in USUAL if METRICS[name].better is not None]


def _rows(
    entry: Comparison,
    point: Point,
    by_seed: BySeed,
    others: PointIndex,
    wanted: Sequence[str],
    confidence: float,
) -> list[ComparisonRow]:
    parameters = dict(point)
    reference = others.of(parameters, {entry.by: entry.to})
    if reference is None:
        return []
    own = by_seed[point]
    rows: list[ComparisonRow] = []
    for name in quantities.meant(wanted, names(own)):
        values, solo = of_seed(own, name), of_seed(by_seed[reference], name)
        seeds = sorted(values.keys() & solo.keys())
        first, second = [values[seed] for seed in seeds], [solo[seed] for seed in seeds]
        metric = quantities.parse(name).metric
        harmed = harm(first, second, metric.better) if entry.harm else None
        if not seeds or (entry.harm and harmed is None):
            continue
        found = differences.paired(*((first, second) if harmed is None else (harmed, [0.0] * len(harmed))), confidence)
        rows.append(
            {
                "by": entry.by,
                "to": entry.to,
                "value": parameters[entry.by],
                "parameters": parameters,
                "metric": name,
                "harm": entry.harm,
                "here": fmean(first),
                "reference": fmean(second),
                "unit": metric.unit,
                "better": metric.better,
                **record(found),
            }
        )
    return rows


def harm(values: Sequence[float], solo: Sequence[float], better: str | None) -> list[float] | None:
    """The share that each value loses beside another flow, relative to its value without that flow; where less is
    better, relative to its value with it. None where neither more nor less is better, and where a divisor is zero."""
    pairs = list(zip(values, solo, strict=True))
    if better is None or any((alone if better == "more" else own) == 0 for own, alone in pairs):
        return None
    return [(alone - own) / alone if better == "more" else (own - alone) / own for own, alone in pairs]


def record(found: Difference) -> DifferenceRow:
    """A difference as summary.json has it, without the keys that `corrected` and `outcome` add."""
    mean, low, high, n, kind = found.interval
    return {
        "difference": mean,
        "low": low,
        "high": high,
        "kind": kind,
        "n": n,
        "test": found.test,
        "p": found.p,
        "effect": found.effect,
        "size": found.size,
        "p_holm": None,
        "outcome": "",
    }


def corrected(rows: Sequence[DifferenceRow]) -> None:
    """Sets `p_holm` of each row, over all that have a test."""
    tested = [(row, row["p"]) for row in rows if row["p"] is not None]
    for (row, _), p in zip(tested, differences.holm([p for _, p in tested]), strict=True):
        row["p_holm"] = p


def outcome(row: DifferenceRow, level: float, better: str | None, harm: bool = False) -> str:
    """The outcome in a word or two: more, less, better, worse, harmed, helped, no difference shown, not tested."""
    if row["p_holm"] is None:
        return "not tested"
    if row["p_holm"] >= level:
        return "no harm shown" if harm else "no difference shown"
    above = row["difference"] > 0
    if harm:
        return "harmed" if above else "helped"
    word = "more" if above else "less"
    return word if better is None else f"{word}, {'better' if word == better else 'worse'}"
