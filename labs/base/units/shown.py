"""How measured values are written for people: the unit that fits, digits that mean something. Pure.

In: values in ns, bit/s, bytes, as shares or parts per billion (shown as %), ratios or counts. Out: text, and for
columns and axes a divisor with the unit's name. `ewan.labs.base.units.about` is the compact form of terminals,
`941.2Mbit/s`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

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
"""How the two ways of a link are told in tables."""
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
    names = list(units)
    if not largest:
        return (units["s"], "s") if unit == "ns" else (units[names[-1]], names[-1])
    nearly = largest * (1 + 0.5 * 10.0 ** (1 - digits))
    name = next((name for name in names if nearly >= units[name]), names[-1])
    return units[name], name


def written(value: float | None, unit: str, digits: int = 4) -> str:
    """`23.92 s`, `941.2 Mbit/s`, `0.9993`, `2.5 %`, with at most so many significant digits; a dash for none."""
    if value is None or not math.isfinite(value):
        return NONE
    divisor, name = fitting([value], unit, digits) if value else (1, _smallest(unit))
    return f"{_significant(value / divisor, digits)} {name}".rstrip()


def with_interval(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """`23.92 ± 0.31 s`; without an interval the mean alone."""
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
    if low is not None and high is not None and _uneven(mean, low, high):
        return f"{mean / divisor:.{places}f} ({low / divisor:.{places}f} to {high / divisor:.{places}f})"
    return f"{mean / divisor:.{places}f} ± {half:.{places}f}"


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
    if _uneven(mean, low, high):
        return f"{shown:.{places}f} ({low / divisor:.{places}f} to {high / divisor:.{places}f})"
    return f"{shown:.{places}f} ± {(high - low) / 2 / divisor:.{places}f}"


def _uneven(mean: float, low: float, high: float) -> bool:
    """One side of an interval is longer than the other by more than a twentieth of both."""
    return abs((high - mean) - (mean - low)) > _EVEN * (high - low)


def percent(value: float | None, places: int = 1) -> str:
    """A difference as a signed share: `+2.5 %`; a dash for none."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:+.{places}%}".replace("%", " %")


def typographic(text: str) -> str:
    """A written value with minus signs instead of hyphens, for pages."""
    return text.replace("-", "−")


def _smallest(unit: str) -> str:
    """The name of the smallest unit: a value of nothing is written in it."""
    return list(_SHOWN[unit])[-1] if unit in _SHOWN else "" if unit in _NAMELESS else unit


def _significant(value: float, digits: int) -> str:
    """With so many significant digits, no exponent, no zeros after the point that say nothing."""
    if value == 0:
        return "0"
    shown = f"{value:.{max(digits - 1 - math.floor(math.log10(abs(value))), 0)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
