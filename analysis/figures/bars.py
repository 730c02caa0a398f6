"""Ratios to a reference as bars, several metrics side by side, as HSTTS has them.

In: points of a summary. Out: a drawing with confidence intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from ewan.analysis.figures import counts, style
from ewan.analysis.figures.choice import ordered
from ewan.analysis.figures.counts import PointCount
from ewan.analysis.figures.style import PAGE, Drawing, Style
from ewan.analysis.load import shared, words
from ewan.analysis.rows import spread
from ewan.labs.base.units.shown import written
from ewan.labs.record.metrics import GROUPS, METRICS, RANKED, MetricGroup
from ewan.labs.record.quantities import parse
from ewan.labs.record.scenario_requests import Reference
from ewan.labs.record.summary import PointSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 8
MOST_GROUPS = 4
HIGHEST_RATIO = 4.0


def normalised(
    points: Sequence[PointSummary],
    normalise: Reference | None,
    varied: Sequence[str],
    wanted: Sequence[str],
    confidence: float,
    look: Style = PAGE,
    kinds: Sequence[str] = (),
) -> Drawing | None:
    """Completion times (or response, or iteration times) as ratios to the reference's; the other parameters make
    panels."""
    if not normalise or not any(point.normalised for point in points):
        return None
    by, to = normalise.by, normalise.to
    metrics = dict(list(_bar_metrics(points, wanted).items())[:MOST_GROUPS])
    if not metrics:
        return None
    others = [name for name in varied if name != by]
    several = shared({name: {str(point.parameters.get(name)) for point in points} for name in varied})
    groups: dict[str, list[PointSummary]] = {}
    for point in points:
        if point.normalised:
            label = _label(point, others, several)
            groups.setdefault(label, []).append(point)
    names = ordered(point.parameters[by] for point in points)
    drawn = [list(groups)[index] for index in spread(len(groups), style.MOST_PANELS)]
    shown = names[:MOST_BARS]
    columns = 1 if len(shown) > 3 else 2
    rows = [
        {"point": label, by: point.parameters[by], "metric": metric, **asdict(point.normalised[metric])}
        for label, group in groups.items()
        for point in group
        for metric in point.normalised
    ]
    seeds = [
        PointCount(str(point.parameters[by]), _label(point, varied, several), value.n)
        for point in points
        for metric, value in point.normalised.items()
        if metric in metrics
    ]
    share = written(confidence, "share")
    caption = f"Each metric divided by that of {to} with the same seed. "
    caption += (
        f"Error bars: {share} confidence intervals over seeds, {counts.in_words(seeds)}; an arrow: it goes on."
        if max(each.n for each in seeds) > 1
        else "One seed: no confidence intervals."
    )
    if len(drawn) < len(groups) or len(shown) < len(names):
        caption += " Not all points are drawn; all are in the CSV."
    times = "Times" if all(parse(name).metric.bar for name in metrics) else "Metrics"
    title = "Completion times" if times == "Times" and metrics.keys() <= set(GROUPS[MetricGroup.COMPLETION]) else times
    with style.sheet(len(drawn), 2.1, columns, look=look) as (figure, axes):
        top = _top([point for label in drawn for point in groups[label]], metrics)
        for axis, label in zip(axes, drawn, strict=True):
            _bars(axis, groups[label], metrics, shown, by, top)
            style.title(axis, label, columns)
        style.outer_labels(axes, "", f"ratio to {to}", columns)
        style.legend(figure, axes)
        return style.drawn(figure, "normalised", f"{title} normalised by {to}", caption, rows, kinds)


def _bar_metrics(points: Sequence[PointSummary], wanted: Sequence[str]) -> dict[str, str]:
    """The normalised metrics, each with its short name: times where there are any, or else the metrics that the
    scenario names."""
    there = {name for point in points for name in point.normalised}
    for group in (MetricGroup.EXCHANGES, MetricGroup.COMPLETION):
        if found := {name: METRICS[name].bar for name in GROUPS[group] if METRICS[name].bar and name in there}:
            return {**found, **({"mean completion time": "completion"} if group is MetricGroup.EXCHANGES else {})}
    return {name: name for name in dict.fromkeys([*wanted, *RANKED]) if name in there}


def _top(points: Sequence[PointSummary], metrics: Mapping[str, str]) -> float:
    """The upper end of the panels: one wide interval or tall bar must not make the others small."""
    ratios = [point.normalised[metric] for point in points for metric in metrics if metric in point.normalised]
    highest = max([value.high or value.ratio or 0 for value in ratios], default=1)
    tallest = max([value.ratio or 0 for value in ratios], default=1)
    return float(min(1.06 * highest, 1.9 * tallest, HIGHEST_RATIO))


def _bars(
    axis: Axes, group: Sequence[PointSummary], metrics: Mapping[str, str], names: Sequence[str], by: str, top: float
) -> None:
    width = 0.84 / len(names)
    for number, name in enumerate(names):
        point = next((point for point in group if str(point.parameters[by]) == name), None)
        places: list[float] = []
        heights: list[float] = []
        below: list[float] = []
        above: list[float] = []
        for index, metric in enumerate(metrics):
            value = point.normalised.get(metric) if point is not None else None
            if value is None or value.ratio is None:
                continue
            places.append(index + (number - (len(names) - 1) / 2) * width)
            heights.append(value.ratio)
            below.append(value.ratio - max(value.low, 0) if value.low is not None else 0)
            above.append(value.high - value.ratio if value.high is not None else 0)
        colour, hatch = style.COLOURS[number % 6], style.HATCHES[number % 6]
        axis.bar(
            places, heights, width * 0.9, color=colour, hatch=hatch, edgecolor=style.INK, linewidth=0.5, label=name
        )
        whiskers = [index for index in range(len(places)) if above[index] > 0]
        axis.errorbar(
            [places[index] for index in whiskers], [heights[index] for index in whiskers],
            [[below[index] for index in whiskers], [above[index] for index in whiskers]],
            fmt="none", color=style.INK, ecolor=style.INK, elinewidth=0.9, capsize=2,
        )  # fmt: skip
        # What goes on above is marked by an arrow, and a bar that does by its number.
        cut = [index for index in range(len(places)) if heights[index] + above[index] > top]
        for index in cut:
            if heights[index] > top:
                back = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8}
                axis.text(places[index], 0.93 * top, f"{heights[index]:.3g}",
                          rotation=90, ha="center", va="top", fontsize=6.5, bbox=back)  # fmt: skip
        axis.plot(
            [places[index] for index in cut], [top] * len(cut), linestyle="none", marker="^", markersize=4,
            color=style.INK, clip_on=False,
        )[0].set_in_layout(False)  # fmt: skip
    axis.axhline(1, color=style.INK, linewidth=0.7)
    axis.set_xticks(range(len(metrics)), list(metrics.values()))
    axis.tick_params(axis="x", length=0)
    axis.grid(False, axis="x")
    axis.set_ylim(0, top)


def _label(point: PointSummary, names: Sequence[str], several: Collection[str]) -> str:
    return words(((name, point.parameters.get(name)) for name in names), several)
