"""How large a parameter must be, by runs that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, cast

import pytest

from ewan.extras.course.measures.base import MeasuredRun, NoValueError
from ewan.extras.course.measures.sizing import enough


@dataclass
class Point:
    """A run that has one metric, and a buffer."""

    number: int
    buffer: Any
    goodput: float

    @property
    def parameters(self) -> dict[str, Any]:
        return {"buffer": self.buffer}

    def metric(self, words: str) -> float:
        assert words == "steady goodput"
        return self.goodput


def runs(*points: tuple[Any, float]) -> Sequence[MeasuredRun]:
    return cast("Sequence[MeasuredRun]", [Point(number, *point) for number, point in enumerate(points, 1)])


def test_the_crossing_is_on_a_line_over_the_logarithm() -> None:
    points = runs((1.0, 100.0), (0.25, 80.0), (0.5, 90.0))
    assert enough(points, "steady goodput", 90.0, "buffer") == pytest.approx(0.5)
    assert enough(points, "steady goodput", 85.0, "buffer") == pytest.approx(0.25 * sqrt(2))


def test_the_last_crossing_counts() -> None:
    points = runs((0.1, 95.0), (0.2, 80.0), (0.4, 100.0))
    assert enough(points, "steady goodput", 90.0, "buffer") == pytest.approx(0.2 * sqrt(2))


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (((0.1, 50.0), (0.2, 80.0)), "does not reach 90 at the largest buffer"),
        (((0.1, 95.0), (0.2, 99.0)), "reaches 90 at every buffer"),
        ((("small", 95.0), (0.2, 99.0)), "no number above zero at run 1"),
    ],
)
def test_no_crossing_is_told(points: tuple[tuple[Any, float], ...], said: str) -> None:
    with pytest.raises(NoValueError, match=said):
        enough(runs(*points), "steady goodput", 90.0, "buffer")
