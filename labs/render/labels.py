"""Places words in a picture so that they overlap nothing. Pure geometry, in pixels.

Comes in: points of nodes, lines between them, words in lines. Goes out: a box for each label, and whether all of them
found a place of their own. Widths of words are those of a wide font, so that a narrower one fits too. What lies near a
box is looked up by squares of the plane, so that a label costs the same in a picture of a thousand hosts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ewan.labs.render.places import Point

LETTER = 6.9
"""Width of a letter of 11 pixels in DejaVu Sans, on average."""
LINE = 13.0
GAP = 3.0
BESIDE = 7.0
"""Between a line, which may be marked, and its words."""
_ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.82, 0.9)
_AWAY = (0.0, 4.0, 9.0, 16.0)
"""The additional distances of a name from its node, in order of preference."""

SQUARE = 64.0
"""The side of a square of the plane, where lines are not so long that each would go through very many of them."""
SQUARES_OF_A_LINE = 8
"""On average, at most."""

Line = tuple[Point, Point]
Square = tuple[int, int]


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
        """Return whether the two boxes are less than a gap apart."""
        wide, high = (self.width + other.width) / 2 + GAP, (self.height + other.height) / 2 + GAP
        return abs(self.x - other.x) < wide and abs(self.y - other.y) < high

    def crossed(self, line: Line) -> bool:
        """Return whether a line enters the box (Liang and Barsky 1984)."""
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


class PictureLabels:
    """The parts of a picture that are already drawn: `lines`, and the boxes `taken`. `upon`: words may stand on their
    own line if there is no room beside it. `crowded`: the number of labels that found no free place."""

    def __init__(self, lines: Iterable[Line], upon: bool = False, taken: Iterable[Box] = ()) -> None:
        self._upon = upon
        self.crowded = 0
        self.taken: list[Box] = []
        lines = list(lines)
        length = sum(math.dist(*line) for line in lines) / max(len(lines), 1)
        self._side = max(SQUARE, length / SQUARES_OF_A_LINE)
        self._lines: defaultdict[Square, list[Line]] = defaultdict(list)
        self._near: defaultdict[Square, list[Box]] = defaultdict(list)
        for line in lines:
            for square in _squares_of_line(line, self._side):
                self._lines[square].append(line)
        for box in taken:
            self._take(box)

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
        return self._first(list(_along(line, *_size(words), self._upon)), [line])

    def _first(self, boxes: Sequence[Box], own: Sequence[Line]) -> Box:
        """The first one with nothing in it; on its `own` line where it is meant to be there."""
        for box in boxes:
            if self._is_free(box, own):
                break
        else:
            box = boxes[0]
            self.crowded += 1
        self._take(box)
        return box

    def _is_free(self, box: Box, own: Sequence[Line]) -> bool:
        for square in _squares_of_box(box, SQUARE):
            if any(map(box.meets, self._near.get(square, ()))):
                return False
        for square in _squares_of_box(box, self._side):
            if any(box.crossed(line) for line in self._lines.get(square, ()) if line not in own):
                return False
        return True

    def _take(self, box: Box) -> None:
        self.taken.append(box)
        for square in _squares_of_box(box, SQUARE):
            self._near[square].append(box)


def _squares_of_box(box: Box, side: float) -> Iterator[Square]:
    """All squares that a box and the gap around it reach into."""
    columns = _squares(box.left - GAP, box.left + box.width + GAP, side)
    rows = _squares(box.top - GAP, box.top + box.height + GAP, side)
    return ((column, row) for column in columns for row in rows)


def _squares_of_line(line: Line, side: float) -> Iterator[Square]:
    """All squares that a line goes through, and those that it comes close to."""
    (x1, y1), (x2, y2) = sorted(line)
    for column in _squares(x1, x2, side):
        least, most = max(x1, column * side), min(x2, (column + 1) * side)
        ends = [y1, y2] if x1 == x2 else [y1 + (x - x1) / (x2 - x1) * (y2 - y1) for x in (least, most)]
        for row in _squares(min(ends) - GAP, max(ends) + GAP, side):
            yield column, row


def _squares(least: float, most: float, side: float) -> range:
    return range(math.floor(least / side), math.floor(most / side) + 1)


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
