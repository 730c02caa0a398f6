"""What an experiment found, for a terminal: a table of metrics by point of its parameters, papers' numbers beside.

In: a summary (analysis/summary.py), findings of a comparison. Out: tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich.table import Table

from generator.engine.parts import Summary
from labs import cli
from labs.units import about, scale

KINDS: Mapping[str, Literal["rate", "size", "time"]] = {"ns": "time", "bit/s": "rate", "B": "size"}
SHARE = "share"
WITHOUT_NAME = ("ratio", "count", "")
NONE = "–"
# Where the scenario does not say which.
USUAL = (
    "mean completion time",
    "aggregate goodput",
    "fairness",
    "utilisation",
    "mean queueing delay",
    "loss",
    "retransmissions",
    "mean response time",
    "mean iteration time",
    "udp loss",
    "udp jitter",
)
MOST_COLUMNS = 6
MANY_POINTS = 40


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


def with_interval(measured: Mapping[str, Any]) -> str:
    """Mean, and half the width of its interval where there is one."""
    mean, unit = measured["mean"], measured["unit"]
    low, high = measured.get("low"), measured.get("high")
    if mean is None or low is None or high is None or not math.isfinite(high - low) or high == low:
        return amount(mean, unit)
    size, name = fitting(mean, unit)
    return f"{mean / size:.4g} ± {(high - low) / 2 / size:.2g}{name}"


def points(summary: Summary, title: str, wanted: Sequence[str] = ()) -> Table:
    """A row for each point; of a single point a row for each metric."""
    found = summary["points"]
    known = {metric for point in found for metric in point["metrics"]}
    if len(found) == 1:
        (point,) = found
        rows = [[name, with_interval(each), str(each["n"])] for name, each in point["metrics"].items()]
        return cli.grid(title, ["metric", "value", "runs"], rows, most=len(rows))
    names = varying([point["parameters"] for point in found])
    metrics = [metric for metric in (wanted or USUAL) if metric in known]
    if not wanted:
        metrics = metrics[:MOST_COLUMNS]
    # With Reno as the reference, the time that matters stands beside its ratio.
    ratio = next((metric for metric in metrics if any(metric in point["normalised"] for point in found)), None)
    columns = [*names, "runs", *metrics, *([f"{ratio}, normalised"] if ratio else [])]
    rows = []
    for point in found:
        cells = [str(point["parameters"].get(name, NONE)) for name in names] + [str(point["seeds"])]
        cells += [with_interval(point["metrics"][name]) if name in point["metrics"] else NONE for name in metrics]
        if ratio:
            cells.append(amount(point["normalised"].get(ratio, {}).get("ratio"), ""))
        rows.append(cells)
    return cli.grid(title, columns, rows, most=MANY_POINTS)


def varying(parameters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the parameters that are not the same everywhere."""
    names = dict.fromkeys(name for each in parameters for name in each)
    return [name for name in names if len({str(each.get(name)) for each in parameters}) > 1]


def beside(summary: Summary) -> Table | None:
    """The papers' numbers beside those measured."""
    rows = []
    for each in summary["beside"]:
        when = " ".join(f"{name}={value}" for name, value in each["when"].items())
        apart = each["difference"]
        rows.append(
            [
                each["source"],
                when,
                each["metric"],
                amount(each["paper"], each["unit"]),
                amount(each["here"], each["unit"]),
                NONE if apart is None or not math.isfinite(apart) else f"{apart:+.2%}",
            ]
        )
    if not rows:
        return None
    return cli.grid("Beside the papers", ["source", "when", "metric", "paper", "here", "difference"], rows)
