"""An empty pair of axes in a lab's text, on which students draw what they expect before they measure. Pure.

In: the two lines of a block `axes`, `x: time (s), 0 to 45` and `y: RTT (ms), 0 to 240`. Out: the axes as SVG, with
ticks and labels; ValueError for other lines.
"""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 15, 50
"""The margins around the area to draw on."""
MOST_TICKS = 8
FORM = 'write two lines, "x: time (s), 0 to 45" and "y: RTT (ms), 0 to 240"'
_LINE = re.compile(r"(?P<name>[xy]):\s*(?P<label>\S.*?),\s*(?P<low>-?[0-9.]+) to (?P<high>-?[0-9.]+)")


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantity with its unit, and its range in that unit."""

    label: str
    low: float
    high: float

    @property
    def ticks(self) -> list[float]:
        """Round numbers in the range."""
        rough = (self.high - self.low) / MOST_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def share(self, value: float) -> float:
        """Return the place of a value between the ends, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


def read(text: str) -> tuple[Axis, Axis]:
    """The axes x and y of a block."""
    found = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None or match["name"] in found:
            raise ValueError(f'axes "{line.strip()}": {FORM}')
        try:
            low, high = float(match["low"]), float(match["high"])
        except ValueError:
            raise ValueError(f'axes "{line.strip()}": {FORM}') from None
        if low >= high:
            raise ValueError(f'axes "{line.strip()}": write the smaller number first')
        found[match["name"]] = Axis(match["label"], low, high)
    if len(found) != 2:
        raise ValueError(f"axes: {FORM}")
    return found["x"], found["y"]


def title(text: str) -> str:
    """Return a description of the picture for screen readers."""
    x, y = read(text)
    return f"{y.label} / {x.label}"


def svg(text: str) -> str:
    """The picture."""
    x, y = read(text)
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    base = TOP + height
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' font-family="sans-serif" font-size="13" role="img" aria-label="{html.escape(title(text))}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for value in x.ticks:
        place = LEFT + width * x.share(value)
        lines.append(f'<path d="M{place:.1f} {TOP}V{base + 5}" stroke="#ddd"/>')
        lines.append(f'<text x="{place:.1f}" y="{base + 20}" text-anchor="middle">{value:g}</text>')
    for value in y.ticks:
        place = base - height * y.share(value)
        lines.append(f'<path d="M{LEFT - 5} {place:.1f}H{LEFT + width}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 9}" y="{place + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = TOP + height / 2
    lines += [
        f'<path d="M{LEFT} {TOP}V{base}H{LEFT + width}" fill="none" stroke="black"/>',
        f'<text x="{LEFT + width / 2}" y="{HEIGHT - 10}" text-anchor="middle">{html.escape(x.label)}</text>',
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">'
        f"{html.escape(y.label)}</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
