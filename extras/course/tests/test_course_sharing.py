"""Who gets how much of a link that is shared, by a run that is made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from ewan.extras.course.measures.base import MeasuredRun, NoValueError
from ewan.extras.course.measures.sharing import rtt_exponent


@dataclass
class Pair:
    """A run of two steps: their goodputs and the medians of their RTTs."""

    goodputs: tuple[float, float]
    rtts: tuple[float, float]

    def metric(self, words: str) -> float:
        name, _, step = words.rpartition(" of ")
        return {"steady goodput": self.goodputs, "rtt p50": self.rtts}[name][("near", "far").index(step)]


def exponent(goodputs: tuple[float, float], rtts: tuple[float, float]) -> float:
    return rtt_exponent(cast("MeasuredRun", Pair(goodputs, rtts)), "near", "far")


def test_the_exponent_is_that_of_the_inverse_rtts() -> None:
    assert exponent((8e6, 2e6), (0.05, 0.1)) == pytest.approx(2)
    assert exponent((3e6, 1e6), (0.05, 0.15)) == pytest.approx(1)
    assert exponent((2e6, 8e6), (0.1, 0.05)) == pytest.approx(2)
    assert exponent((5e6, 5e6), (0.05, 0.1)) == 0


@pytest.mark.parametrize(("goodputs", "rtts"), [((1e6, 2e6), (0.1, 0.1)), ((0.0, 2e6), (0.05, 0.1))])
def test_no_exponent_is_told(goodputs: tuple[float, float], rtts: tuple[float, float]) -> None:
    with pytest.raises(NoValueError, match="near, far: have no exponent"):
        exponent(goodputs, rtts)
