"""Axes of figures: values of a parameter as places, and bounds of possible values. Pure.

In: values of parameters as they are written, `0.5BDP`, `10ms`, `cubic`; measured values with intervals. Out: the place
of each on an axis and its text; intervals cut at the bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ewan.analysis import summary
from ewan.labs.base.units import Buffer, UnitError
from ewan.labs.base.units.shown import fitting
from ewan.labs.record.figures import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

MOST_TICKS = 8
LOG_FROM = 4.0
"""Times the least value: where values go so far, evenly by their ratios, the axis is logarithmic."""
DECADES = 100.0
"""Times the least loss: where losses span so much, their axis is logarithmic."""
FEW_DECADES = 500.0
"""Times its lower end: so far a logarithmic axis has ticks within decades."""


class ScaleError(ValueError):
    """A parameter has no such axis; the message follows the scale's name."""


@dataclass(frozen=True)
class ParameterAxis:
    """`places` by the value as it is written. `zero`: where 0 stands on a logarithmic axis, which has no place for it.

    `words`: the values are names at equal distances.
    """

    places: Mapping[str, float]
    label: str
    log: bool = False
    words: bool = False
    zero: float | None = None

    def put_on(self, axis: Axes) -> None:
        """Scale and ticks of the panel's horizontal axis."""
        from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

        places = sorted(set(self.places.values()))
        if self.words:
            names = {place: name for name, place in self.places.items()}
            axis.set_xticks(places, [names[place] for place in places])
            longest = max((len(name) for name in names.values()), default=0)
            if longest * len(places) > 6.0 * axis.figure.get_figwidth():  # type: ignore[union-attr]
                axis.tick_params(axis="x", labelrotation=30)
                for label in axis.get_xticklabels():
                    label.set_horizontalalignment("right")
            axis.set_xlim(places[0] - 0.6, places[-1] + 0.6)
            axis.grid(False, axis="x")
            return
        if self.log:
            axis.set_xscale("log")
            axis.xaxis.set_minor_locator(NullLocator())
        apart = len(places) <= MOST_TICKS and (self.log or _far_apart(places))
        if apart:
            axis.xaxis.set_major_locator(FixedLocator(places))
        elif self.log:
            axis.xaxis.set_major_locator(LogLocator(numticks=MOST_TICKS))
            axis.xaxis.set_minor_formatter(NullFormatter())
        axis.xaxis.set_major_formatter(lambda value, _: "0" if value == self.zero else f"{value:g}")


def tick_by_ratio(axis: Axis) -> None:
    """Ticks of a logarithmic axis: where it spans few decades at 1, 2 and 5 of each, else at their beginnings."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few = low > 0 and high <= FEW_DECADES * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=15))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def top(axes: Sequence[Axes]) -> float:
    """The upper end of panels that begin at zero, a twentieth above their highest value at least.

    The margin that matplotlib leaves is of the values' distance from each other: of values that are close together it
    is none beside their distance from zero.
    """
    return max(axes[0].get_ylim()[1], 1.05 * max(float(axis.dataLim.ymax) for axis in axes))


def whole_ticks(axis: Axis, unit: str) -> None:
    """Sets ticks of a linear axis of counts at whole numbers only."""
    if unit in ("count", "packets", "segments", "bytes"):
        axis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]


def _far_apart(places: Sequence[float]) -> bool:
    """Labels of ticks there do not touch."""
    span = places[-1] - places[0]
    return all(b - a > 0.07 * span for a, b in pairwise(places))


def number(value: object) -> tuple[float, str]:
    """A parameter's value as a number with its unit: those of published values, BDP, packets; words are NaN."""
    found, unit = summary.number(value, "")
    if found == found:
        return found, unit
    try:
        buffer = Buffer.parse(value)
    except UnitError:
        return math.nan, ""
    return (buffer.amount / 1000, "BDP") if buffer.unit == "millibdp" else (float(buffer.amount), buffer.unit)


def axis_of(name: str, values: Iterable[object], scale: Scale | None = None) -> ParameterAxis:
    """The axis of a parameter with these values, in their order; ScaleError where they have no such scale."""
    texts = list(dict.fromkeys(str(value) for value in values))
    numbers = {text: number(text) for text in texts}
    units = {unit for _, unit in numbers.values()}
    numeric = len(units) == 1 and all(value == value for value, _ in numbers.values())
    if scale == "categories" or (scale is None and (not numeric or len(texts) < 2)):
        ordered = sorted(texts, key=lambda text: numbers[text][0]) if numeric else texts
        return ParameterAxis({text: float(place) for place, text in enumerate(ordered)}, name, words=True)
    if not numeric:
        word = next((text for text, (value, _) in numbers.items() if value != value), texts[0])
        raise ScaleError(f'{name} has values like "{word}" that are no numbers of one unit: write "scale categories"')
    if scale == "bdp" and units != {"BDP"}:
        raise ScaleError(f'the values of {name} are in {units.pop() or "no unit"}: write them as "0.5BDP", "1BDP"')
    unit = units.pop()
    per, shown = (1.0, unit) if unit in ("BDP", "packets") else fitting([value for value, _ in numbers.values()], unit)
    places = {text: value / per for text, (value, _) in numbers.items()}
    label = f"{name} ({shown})" if shown else name
    positive = sorted({place for place in places.values() if place > 0})
    logarithmic = scale in ("log", "bdp") or (scale is None and _by_ratio(positive))
    if not logarithmic:
        return ParameterAxis(places, label)
    if min(places.values()) < 0 or not positive:
        raise ScaleError(f'{name} has values that are not above zero: write "scale linear"')
    zero = None
    if min(places.values()) == 0:
        step = positive[1] / positive[0] if len(positive) > 1 else 10.0
        zero = positive[0] / step
        places = {text: place or zero for text, place in places.items()}
    return ParameterAxis(places, label, log=True, zero=zero)


def _by_ratio(values: Sequence[float]) -> bool:
    """Return whether the ratios between neighbours vary less than their differences, over a wide range."""
    if len(values) < 3 or values[-1] < LOG_FROM * values[0]:
        return False
    ratios, differences = np.diff(np.log(values)), np.diff(values)
    return bool(np.std(ratios) / np.mean(ratios) < np.std(differences) / np.mean(differences))


@dataclass(frozen=True)
class BoundedInterval:
    """An interval within the bounds. `below`, `above`: it goes on beyond them."""

    low: float
    high: float
    below: bool = False
    above: bool = False


def clipped(low: float, high: float, bounds: tuple[float | None, float | None]) -> BoundedInterval:
    """The part of an interval that lies within the bounds."""
    least, most = bounds
    below, above = least is not None and low < least, most is not None and high > most
    return BoundedInterval(least if below and least is not None else low, most if above and most is not None else high,
                   below, above)  # fmt: skip


def spans_decades(values: Iterable[float]) -> bool:
    """Return whether the positive values span so much that a linear axis shows only the largest."""
    positive = [value for value in values if value > 0]
    return len(positive) > 1 and max(positive) >= DECADES * min(positive)
