"""Values of metrics for people: the unit that fits, digits that mean something. Pure.

In: values in ns, bit/s, bytes, as shares (shown as %), ratios or counts. Out: text, and for axes a divisor with the
unit's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from labs.units import scale

_SCALES: dict[str, dict[str, int | float]] = {
    "ns": {name.replace("us", "µs"): size for name, size in scale("time").items()},
    "bit/s": dict(scale("rate")),
    "B": dict(scale("size")),
    "share": {"%": 0.01},
}
NONE = "–"
MOST_PLACES = 4


def fitting(values: Iterable[float | None], unit: str) -> tuple[float, str]:
    """Divisor and name of the unit that the largest of the values fills."""
    units = _SCALES.get(unit)
    if units is None:
        return 1, "" if unit in ("ratio", "count") else unit
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0)
    if not largest:
        name = "s" if unit == "ns" else list(units)[-1]
    else:
        # What rounds up to the next unit is shown in it.
        name = next((name for name, size in units.items() if largest * 1.0005 >= size), list(units)[-1])
    return units[name], name


def text(value: float | None, unit: str, digits: int = 4) -> str:
    """`23.92 s`, `941.2 Mbit/s`, `0.9993`, `2.5 %`; a dash for none."""
    if value is None or not math.isfinite(value):
        return NONE
    divisor, name = fitting([value], unit)
    return f"{_digits(value / divisor, digits)} {name}".rstrip()


def with_interval(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """`23.92 ± 0.31 s`; without an interval the mean alone."""
    divisor, name = fitting([mean], unit)
    return f"{cell(mean, low, high, divisor)} {name}".rstrip() if _known(mean) else NONE


def cell(mean: float | None, low: float | None, high: float | None, divisor: float) -> str:
    """As `with_interval`, for a column whose heading names the unit."""
    if mean is None or not _known(mean):
        return NONE
    half = (high - low) / 2 / divisor if low is not None and high is not None else 0
    if half == 0:
        return _digits(mean / divisor, 4)
    # The last digit shown is the second of the half width, but no finer than a table has room for: then rounded up.
    places = max(1 - math.floor(math.log10(half)), 0)
    if places > MOST_PLACES:
        places, half = MOST_PLACES, math.ceil(half * 10**MOST_PLACES) / 10**MOST_PLACES
    return f"{_number(mean / divisor, places)} ± {_number(half, places)}"


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _digits(value: float, digits: int) -> str:
    """With so many significant digits, no exponent, no zeros after the point that say nothing."""
    if value == 0:
        return "0"
    shown = _number(value, max(digits - 1 - math.floor(math.log10(abs(value))), 0))
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _number(value: float, places: int) -> str:
    return f"{value:.{places}f}".replace("-", "−")


def percent(value: float | None) -> str:
    """A difference as a signed share: `+2.5 %`."""
    if value is None or not _known(value):
        return NONE
    return f"{value:+.1%}".replace("%", " %").replace("-", "−")
