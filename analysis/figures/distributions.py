"""Distributions: completion times, response and iteration times, start lateness.

In: tables of runs, by point. Out: cumulative shares, one line a point, the values of all its seeds together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter

from analysis.figures import style
from analysis.figures.style import Drawing
from labs.units.shown import fitting

FEWEST = 8
"""Values of which a distribution is drawn; of fewer the table says as much."""
MOST_STEPS = 400
WIDE = 20
"""Times the least of the medians: where the largest value is beyond, the axis is logarithmic."""


class Sample(NamedTuple):
    """Values in ns of one point. `drawn`: there is room for it."""

    label: str
    values: Sequence[int]
    drawn: bool


def cumulative(name: str, title: str, quantity: str, caption: str, samples: Sequence[Sample]) -> Drawing | None:
    """The share of values that are no larger; a logarithmic axis where the largest is far from the least median."""
    known = [sample for sample in samples if len(sample.values) >= FEWEST]
    if not known or not any(max(sample.values) for sample in known):
        return None
    drawn = [sample for sample in known if sample.drawn] or known[: style.MOST_LINES]
    medians = [max(float(np.median(sample.values)), 1) for sample in drawn]
    wide = max(max(sample.values) for sample in drawn) >= WIDE * min(medians)
    typical = medians if wide else [float(max(sample.values)) for sample in drawn]
    divisor, unit = fitting(typical, "ns")
    with style.sheet(1, 2.5) as (figure, axes):
        axis = axes[0]
        for number, sample in enumerate(drawn):
            values, shares = _steps(sample.values)
            axis.step(
                values / divisor, shares, where="post", color=style.COLOURS[number % 6],
                linestyle=style.DASHES[number % 6], marker=style.MARKERS[number % 6], markersize=3.5,
                markevery=(0.03 * number, 0.2), label=sample.label or "all",
            )  # fmt: skip
        if wide:
            least = min(min(value for value in sample.values if value > 0) for sample in drawn if max(sample.values))
            axis.set_xscale("log")
            axis.set_xlim(0.9 * least / divisor)
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        else:
            least, most = (function(function(sample.values) for sample in drawn) for function in (min, max))
            if least < 0.5 * most or least == most:
                axis.set_xlim(0)
        axis.set_ylim(0, 1.03)
        axis.set_xlabel(f"{quantity} ({unit})")
        axis.set_ylabel("share of all")
        if len(drawn) > 1:
            style.legend(figure, axes)
        text = style.svg(figure)
    counts = sum(len(sample.values) for sample in known)
    words = f"{caption} {counts} values, all seeds together."
    if len(drawn) < len(known):
        words += f" {len(drawn)} of {len(known)} points drawn, all are in the CSV."
    return Drawing(name, title, words, text, style.csv(_rows(known, quantity)))


def _steps(values: Sequence[int]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Values with the share that is no larger; of many only so many steps as can be seen."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
    kept = style.spread(len(ordered), MOST_STEPS)
    # From zero, so that the first step is seen.
    return np.concatenate(([ordered[0]], ordered[kept])), np.concatenate(([0.0], shares[kept]))


def _rows(samples: Sequence[Sample], quantity: str) -> list[dict[str, Any]]:
    rows = []
    for sample in samples:
        values, shares = _steps(sample.values)
        for value, share in zip(values, shares, strict=True):
            rows.append({"point": sample.label, f"{quantity} (ns)": int(value), "share": float(share)})
    return rows
