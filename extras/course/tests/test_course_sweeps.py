"""Measures of sweeps and of recoveries, on constructed runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest

from ewan.extras.course.measures.base import NoValueError, TimeSeries, Value
from ewan.extras.course.measures.recovery import recovery, shortfall
from ewan.extras.course.measures.sweeps import best, crossing


@dataclass(frozen=True)
class Made:
    """A run as measures see it; `found`: metrics, `goodput`: of each half second, in bit/s."""

    parameters: Mapping[str, Value]
    found: Mapping[str, float] = field(default_factory=dict)
    goodput: tuple[float, ...] = ()
    number: int = 1
    name: str = ""
    seed: int = 1

    def metric(self, words: str) -> float:
        return self.found[words]

    def series(self, name: str, *, step: str = "", flow: str = "", link: str = "", window: float = 0.0) -> TimeSeries:
        assert (name, step, window) == ("goodput", "download", 0.5)
        times = np.array([0.25 + 0.5 * place for place in range(len(self.goodput))], dtype=np.float64)
        return TimeSeries(times, np.array(self.goodput, dtype=np.float64))

    def table(self, name: str) -> pl.DataFrame:
        raise NoValueError(name)

    def text(self, name: str) -> str:
        raise NoValueError(name)


def shares(*pairs: tuple[float, float]) -> list[Made]:
    return [Made({"buffer": buffer}, {"share of bbr": share}) for buffer, share in pairs]


def test_a_crossing_lies_on_the_line_over_the_logarithm() -> None:
    runs = shares((4, 0.4), (1, 0.9), (2, 0.6), (8, 0.2))
    assert crossing(runs, "share", 0.5, by="buffer", step="bbr") == pytest.approx(2 * 2**0.5)
    assert crossing(runs, "share of bbr", 0.3, by="buffer") == pytest.approx(4 * 2**0.5)


def test_where_nothing_crosses_there_is_no_value() -> None:
    with pytest.raises(NoValueError, match=r"does not pass 0.5 between the values of buffer"):
        crossing(shares((1, 0.9), (2, 0.6)), "share of bbr", 0.5, by="buffer")
    with pytest.raises(NoValueError, match=r"other is no number above 0 in run 1: None"):
        crossing(shares((1, 0.9), (2, 0.4)), "share of bbr", 0.5, by="other")


def test_the_best_of_words() -> None:
    runs = [Made({"queue": word}, {"p99": value}) for word, value in (("drop-tail", 3), ("codel", 1), ("pie", 2))]
    assert best(runs, "p99", by="queue") == "codel"
    assert best(runs, "p99", by="queue", among="pie drop-tail") == "pie"
    assert best(runs, "p99", by="queue", most=True) == "drop-tail"
    with pytest.raises(NoValueError, match=r"no two values of queue"):
        best(runs[:1], "p99", by="queue")


def test_recovery_counts_from_a_moment_to_the_middle_of_a_window() -> None:
    run = Made({}, goodput=(9e6, 9e6, 0, 2e6, 6e6, 9e6, 9e6))
    assert recovery(run, 8e6, 1.0, step="download") == pytest.approx(1.75)
    assert recovery(run, 8e6, 0.0, step="download") == pytest.approx(0.25)
    with pytest.raises(NoValueError, match=r"never 1e.07 bit/s after 1 s"):
        recovery(run, 10e6, 1.0, step="download")


def test_a_shortfall_is_the_area_below_a_level() -> None:
    run = Made({}, goodput=(8e6, 0, 4e6, 8e6))
    assert shortfall(run, 8e6, 0.5, 1.5, step="download") == pytest.approx(750_000)
    assert shortfall(run, 8e6, 1.5, 2.0, step="download") == 0
    with pytest.raises(NoValueError, match=r"no goodput between 5 s and 6 s"):
        shortfall(run, 8e6, 5, 6, step="download")
