"""Writes measured values for people: the unit that fits, and only significant digits. Pure.

In: values in ns, bit/s, bytes, as shares or parts per billion (shown as %), ratios or counts. Out: text, and for
columns and axes a divisor with the unit's name. What people wrote is written exactly by its own type (`str(Rate)`,
`str(Duration)`); all that was measured is written here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from ewan.labs.base.units import PPB, scale

_SHOWN: dict[str, dict[str, int | float]] = {
    "ns": {unit.replace("us", "µs"): size for unit, size in scale("time").items()},
    "bit/s": dict(scale("rate")),
    "B": dict(scale("size")),
    "bytes": dict(scale("size")),
    "share": {"%": 0.01},
    "ppb": {"%": PPB // 100},
}
_NAMELESS = ("ratio", "count", "")
"""Units that are not written."""
ARROWS = {"forward": "→", "backward": "←"}
"""The symbols of the two directions of a link in tables."""
NONE = "–"
"""Stands for a value that there is none of."""
_MOST_PLACES = 4
_EVEN = 0.05


def fitting(values: Iterable[float | None], unit: str, digits: int = 4) -> tuple[float, str]:
    """Divisor and name of the unit that the largest of the values fills, so that they share it.

    `unit` is what they are in: ns, bit/s, B or bytes, share or ppb (both shown as %), ratio, count. What rounds up to
    the next unit at so many digits is shown in it: 1 Gbit/s, not 1000 Mbit/s.
    """
    units = _SHOWN.get(unit)
    if units is None:
        return 1, _smallest(unit)
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0)
    name = _filled(largest, units, digits) if largest or unit != "ns" else "s"
    return units[name], name


def written(value: float | None, unit: str, digits: int = 4) -> str:
    """`23.92 s`, `941.2 Mbit/s`, `0.9993`, `2.5 %`, with at most so many significant digits; a dash for none."""
    if value is None or not math.isfinite(value):
        return NONE
    divisor, name = fitting([value], unit, digits) if value else (1, _smallest(unit))
    return f"{_significant(value / divisor, digits)} {name}".rstrip()


def about(amount: float, kind: Literal["rate", "size", "time"], digits: int = 4) -> str:
    """`941.2Mbit/s`: a measured amount (bit/s, bytes, ns) in the compact form of terminals. Never parsed again."""
    units = scale(kind)
    unit = _filled(abs(amount), units, digits)
    return f"{float(f'{amount / units[unit]:.{digits}g}'):.12g}{unit}"


def with_interval(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """`23.92 ± 0.31 s`; without an interval only the mean."""
    divisor, name = fitting([mean], unit)
    text = interval_in(divisor, mean, low, high)
    return text if text == NONE else f"{text} {name}".rstrip()


def interval_in(divisor: float, mean: float | None, low: float | None, high: float | None) -> str:
    """As `with_interval`, for a column whose heading names the unit.

    The last digit is the second of the half width; no finer than four places: the half width is then rounded up. An
    interval with unequal sides has both bounds: `0.980 (0.914 to 1.000)`.
    """
    if mean is None or not math.isfinite(mean):
        return NONE
    half = (high - low) / 2 / divisor if low is not None and high is not None else 0
    if half == 0:
        return _significant(mean / divisor, 4)
    places = max(1 - math.floor(math.log10(half)), 0)
    if places > _MOST_PLACES:
        places, half = _MOST_PLACES, math.ceil(half * 10**_MOST_PLACES) / 10**_MOST_PLACES
    return _bounded(divisor, mean, low, high, half, places)


def aligned(divisor: float, mean: float | None, low: float | None, high: float | None, digits: int = 4) -> str:
    """`3.253 ± 0.120`, for rows of a terminal's table.

    So many digits of the mean, trailing zeros included, and as many decimal places of half the interval's width.
    """
    if mean is None or not math.isfinite(mean):
        return NONE
    shown = mean / divisor
    places = max(0, digits - (len(str(int(abs(shown)))) if abs(shown) >= 1 else 0))
    if low is None or high is None or not math.isfinite(high - low):
        return f"{shown:.{places}f}"
    return _bounded(divisor, mean, low, high, (high - low) / 2 / divisor, places)


def _bounded(divisor: float, mean: float, low: float | None, high: float | None, half: float, places: int) -> str:
    """A mean with half its interval; with both bounds where one side of the interval is longer than the other by more
    than a twentieth of both."""
    shown = f"{mean / divisor:.{places}f}"
    if low is not None and high is not None and abs((high - mean) - (mean - low)) > _EVEN * (high - low):
        return f"{shown} ({low / divisor:.{places}f} to {high / divisor:.{places}f})"
    return f"{shown} ± {half:.{places}f}"


def percent(value: float | None, places: int = 1) -> str:
    """A difference as a signed share: `+2.5 %`; a dash for none."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:+.{places}%}".replace("%", " %")


def typographic(text: str) -> str:
    """A written value with minus signs instead of hyphens, for pages."""
    return text.replace("-", "−")


def _filled(amount: float, units: Mapping[str, float], digits: int) -> str:
    """The largest unit, of those from large to small, that an amount fills at so many digits; else the smallest."""
    rounded = float(f"{amount:.{digits}g}")
    return next((name for name, size in units.items() if rounded >= size), list(units)[-1])


def _smallest(unit: str) -> str:
    """The name of the smallest unit: a value of nothing is written in it."""
    return list(_SHOWN[unit])[-1] if unit in _SHOWN else "" if unit in _NAMELESS else unit


def _significant(value: float, digits: int) -> str:
    """With so many significant digits, no exponent, no zeros after the point that say nothing."""
    if value == 0:
        return "0"
    shown = f"{value:.{max(digits - 1 - math.floor(math.log10(abs(value))), 0)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
