"""What an experiment found, for a terminal: a table of metrics by point of its parameters, papers' numbers beside.

In: a summary (analysis/summary.py), findings of a comparison. Out: tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from generator.engine.parts import Summary
from labs import cli
from labs.sheet import Sheet
from labs.units import about, scale

KINDS: Mapping[str, Literal["rate", "size", "time"]] = {"ns": "time", "bit/s": "rate", "B": "size"}
SHARE = "share"
WITHOUT_NAME = ("ratio", "count", "")
NONE = "–"
# Where the scenario does not say which.
USUAL = (
    "mean completion time",
    "aggregate goodput",
    "fairness per flow",
    "fairness per source",
    "utilisation",
    "mean queueing delay",
    "queue loss",
    "link loss",
    "total loss",
    "retransmissions",
    "mean response time",
    "mean iteration time",
    "udp loss",
    "udp jitter",
)
POINTS_BESIDE = 6
DIGITS = 4


def amount(value: float | None, unit: str) -> str:
    """A measured value for reading."""
    if value is None or not math.isfinite(value):
        return NONE
    if unit in KINDS:
        return about(value, KINDS[unit])
    if unit == SHARE:
        return f"{value:.3%}"
    return f"{value:.4g}" if unit in WITHOUT_NAME else f"{value:.4g} {unit}"


def fitting(value: float, unit: str) -> tuple[float, str]:
    """The unit that a value fills, and how it is called."""
    if unit == SHARE:
        return 0.01, "%"
    if unit not in KINDS:
        return 1.0, "" if unit in WITHOUT_NAME else f" {unit}"
    units = scale(KINDS[unit])
    name = next((name for name, size in units.items() if abs(value) >= size), list(units)[-1])
    return float(units[name]), name


def points(summary: Summary, title: str, wanted: Sequence[str] = ()) -> list[Sheet]:
    """A column for each point of the parameters, a row for each metric, in the unit that the first point fills."""
    found = summary["points"]
    names = varying([point["parameters"] for point in found])
    known = {metric for point in found for metric in point["metrics"]}
    metrics = [metric for metric in (wanted or USUAL) if metric in known] or sorted(known)
    drawn = []
    for first in range(0, len(found), POINTS_BESIDE):
        block = found[first : first + POINTS_BESIDE]
        heads = [" ".join(f"{point['parameters'].get(name, NONE)}" for name in names) or "value" for point in block]
        rows = [["runs", *(str(point["seeds"]) for point in block)]]
        for metric in metrics:
            rows.append(row(metric, [point["metrics"].get(metric) for point in block]))
            ratios = [point["normalised"].get(metric) for point in block]
            if metric == metrics[0] and any(ratios):
                rows.append(row(f"  multiple of {summary['normalise']['to']}'s", [multiple(each) for each in ratios]))
        drawn.append(cli.grid("" if first else title, [" ".join(names), *heads], rows, most=len(rows)))
    return drawn


def row(name: str, measured: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """`name (unit)`, then each mean with half the width of its interval, to four digits of the mean."""
    there = [each for each in measured if each is not None and each["mean"] is not None]
    if not there:
        return [name, *(NONE for _ in measured)]
    size, unit = fitting(there[0]["mean"], there[0]["unit"])
    return [f"{name} ({unit.strip()})" if unit else name, *(with_interval(each, size) for each in measured)]


def with_interval(measured: Mapping[str, Any] | None, size: float) -> str:
    """`3.253 ± 0.120`: in units of `size`; without an interval where there is one value alone."""
    if measured is None or measured["mean"] is None or not math.isfinite(measured["mean"]):
        return NONE
    mean, low, high = measured["mean"] / size, measured.get("low"), measured.get("high")
    decimals = max(0, DIGITS - (len(str(int(abs(mean)))) if abs(mean) >= 1 else 0))
    if low is None or high is None or not math.isfinite(high - low):
        return f"{mean:.{decimals}f}"
    return f"{mean:.{decimals}f} ± {(high - low) / 2 / size:.{decimals}f}"


def multiple(ratio: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A ratio of the summary as a measured value."""
    return None if ratio is None else {**ratio, "mean": ratio["ratio"], "unit": "ratio"}


def varying(parameters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the parameters that are not the same everywhere."""
    names = dict.fromkeys(name for each in parameters for name in each)
    return [name for name in names if len({str(each.get(name)) for each in parameters}) > 1]


def beside(summary: Summary) -> Sheet | None:
    """The papers' numbers beside those measured."""
    rows = []
    for each in summary["beside"]:
        apart, than = each["difference"], each.get("than")
        rows.append(
            [
                each["source"],
                settings(each["when"]),
                f"{each['metric']}, more than at {settings(than)}" if than else each["metric"],
                amount(each["paper"], each["unit"]),
                amount(each["here"], each["unit"]),
                NONE if apart is None or not math.isfinite(apart) else f"{apart:+.2%}" + (" points" if than else ""),
            ]
        )
    if not rows:
        return None
    return cli.grid("Beside the papers", ["source", "when", "metric", "paper", "here", "difference"], rows)


def settings(parameters: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())
