"""Where words stand in a picture so that nothing lies on them. Pure geometry, in pixels.

Comes in: points of nodes, lines between them, words in lines. Goes out: a box for each label, and whether all of them
found a place of their own. Widths of words are those of a wide font, so that a narrower one fits too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from labs.render.places import Point

LETTER = 6.9
"""Width of a letter of 11 pixels in DejaVu Sans, on average."""
LINE = 13.0
GAP = 3.0
BESIDE = 7.0
"""Between a line, which may be marked, and its words."""
_ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.82, 0.9)
_AWAY = (0.0, 4.0, 9.0, 16.0)
"""How much further from its node a name may stand."""

Line = tuple[Point, Point]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle by its middle and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        """Least x."""
        return self.x - self.width / 2

    @property
    def top(self) -> float:
        """Least y."""
        return self.y - self.height / 2

    def meets(self, other: Box) -> bool:
        """Whether the two are less than a gap apart."""
        wide, high = (self.width + other.width) / 2 + GAP, (self.height + other.height) / 2 + GAP
        return abs(self.x - other.x) < wide and abs(self.y - other.y) < high

    def crossed(self, line: Line) -> bool:
        """Whether a line comes into it (Liang and Barsky 1984)."""
        (x1, y1), (x2, y2) = line
        enter, leave = 0.0, 1.0
        for start, step, least, size in (
            (x1, x2 - x1, self.left, self.width),
            (y1, y2 - y1, self.top, self.height),
        ):
            if step == 0:
                if not least <= start <= least + size:
                    return False
                continue
            ends = sorted(((least - start) / step, (least + size - start) / step))
            enter, leave = max(enter, ends[0]), min(leave, ends[1])
        return enter < leave


@dataclass(slots=True)
class Labels:
    """What is drawn already: `lines` and `taken` boxes. `crowded`: labels that found no place of their own."""

    lines: Sequence[Line]
    upon: bool = False
    """Words may stand on their own line, where there is no room beside it."""
    taken: list[Box] = field(default_factory=list)
    crowded: int = 0

    def at_node(self, point: Point, radius: float, name: str) -> Box:
        """A node's name: below it, or above, or beside."""
        width, height = _size([name])
        ways = []
        for away in _AWAY:
            reach = radius + height / 2 + GAP + 0.5 + away
            side = radius + width / 2 + GAP + 0.5 + away
            ways += [(0, reach), (0, -reach), (side, 0), (-side, 0)]
            ways += [(x * (width / 2 + 4 + away), y * reach) for y in (1, -1) for x in (1, -1)]
        return self._first([Box(point[0] + x, point[1] + y, width, height) for x, y in ways], ())

    def at_line(self, line: Line, words: Sequence[str]) -> Box:
        """A link's words: beside its line, or on it."""
        return self._first(list(_along(line, *_size(words), self.upon)), [line])

    def _first(self, boxes: Sequence[Box], own: Sequence[Line]) -> Box:
        """The first one with nothing in it; on its `own` line where it is meant to be there."""
        for box in boxes:
            others = (line for line in self.lines if line not in own)
            if not any(map(box.meets, self.taken)) and not any(map(box.crossed, others)):
                break
        else:
            box = boxes[0]
            self.crowded += 1
        self.taken.append(box)
        return box


def _size(words: Sequence[str]) -> tuple[float, float]:
    return LETTER * max(map(len, words)), LINE * len(words)


def _along(line: Line, width: float, height: float, upon: bool) -> Iterator[Box]:
    """Above and below a line, or left and right of it, from its middle on; then upon it where that may be."""
    (x1, y1), (x2, y2) = line
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    normal = ((y2 - y1) / length, -(x2 - x1) / length)
    if normal[1] > 0 or (normal[1] == 0 and normal[0] < 0):
        normal = (-normal[0], -normal[1])
    reach = abs(normal[0]) * width / 2 + abs(normal[1]) * height / 2 + BESIDE
    for away in (reach, -reach, 0.0) if upon else (reach, -reach):
        for along in _ALONG:
            x, y = x1 + along * (x2 - x1), y1 + along * (y2 - y1)
            yield Box(x + away * normal[0], y + away * normal[1], width, height)
