"""Which runs an expression is of, what measures see of them, and what a truth is where something is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ewan.extras.course import expressions, truths
from ewan.extras.course.measures import base, basic
from ewan.extras.course.measures.base import MeasuredRun, NoValueError, TimeSeries, Value
from ewan.extras.course.runs import RunSelection, StudentRun, matching, same
from ewan.generator import scenario

TEXT = """
name: chosen
parameters: {rate: 8Mbit/s, rtt: 60ms, buffer: 1BDP}
sweep: {buffer: [0.1BDP, 1BDP], rtt: [20ms, 40ms]}
seeds: [7, 9]
lab: {topology: dumbbell, rtt: "${rtt}", wan: {rate: "${rate}", buffer: "${buffer}"}}
steps: [{name: load, from: left1, to: right1, for: 1s, congestion: reno, bulk: }]
"""


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7, 8]),
        ({"buffer": "1BDP"}, [5, 6, 7, 8]),
        ({"buffer": "1BDP", "rtt": 0.04}, [7, 8]),
        ({"buffer": "1.0BDP", "rtt": "0.04s", "seed": 9}, [8]),
        ({"run": 3}, [3]),
        ({"run": 3, "seed": 9}, []),
        ({"rtt": None}, [1, 2, 3, 4, 5, 6, 7, 8]),
        ({"rate": "9Mbit/s"}, []),
    ],
)
def test_words_choose_runs(words: Mapping[str, Value | None], numbers: Sequence[int]) -> None:
    runs = scenario.parse(TEXT, Path("chosen.scenario.yaml")).runs()
    assert list(matching(runs, RunSelection.of(words))) == numbers


def test_a_parameter_that_there_is_none_of() -> None:
    runs = scenario.parse(TEXT, Path("chosen.scenario.yaml")).runs()
    with pytest.raises(NoValueError, match="has no parameter bufer: rate, rtt, buffer"):
        list(matching(runs, RunSelection.of({"bufer": "1BDP"})))


@pytest.mark.parametrize(
    ("written", "value", "equal"),
    [
        ("40ms", "0.04s", True),
        ("40ms", 0.04, True),
        ("reno", "reno", True),
        (2, 2, True),
        (2, "2", True),
        ("1BDP", 1, True),
        ("40ms", 40, False),
        ("reno", 1.0, False),
        ("40ms", "40MB", False),
    ],
)
def test_values_are_the_same_as_they_are_written_or_as_amounts(written: str | int, value: Value, equal: bool) -> None:
    assert same(written, value) == equal


@dataclass
class Made:
    """A run of made up values."""

    number: int = 1
    name: str = "made"
    seed: int = 1
    parameters: Mapping[str, Value] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    values: Sequence[float] = (1.0, 5.0, 2.0, 4.0)

    def metric(self, words: str) -> float:
        if words not in self.metrics:
            raise NoValueError(f"run {self.number} has no {words}")
        return self.metrics[words]

    def series(self, name: str, *, step: str = "", flow: str = "", link: str = "", window: float = 0.0) -> TimeSeries:
        return TimeSeries(np.arange(len(self.values), dtype=float), np.array(self.values))

    def table(self, name: str) -> pl.DataFrame:
        return pl.DataFrame()

    def text(self, name: str) -> str:
        return ""


def test_values_of_series() -> None:
    run: MeasuredRun = Made()
    assert basic.value(run, "cwnd", 2.5) == 2.0 and basic.value(run, "cwnd", 3.0) == 4.0
    assert basic.largest(run, "cwnd") == 5.0 and basic.largest(run, "cwnd", from_=2) == 4.0
    assert basic.least(run, "cwnd", from_=1, to=2) == 2.0 and basic.mean(run, "cwnd", to=1) == 3.0
    with pytest.raises(NoValueError, match="cwnd: has no sample until -1 s"):
        basic.value(run, "cwnd", -1.0)
    with pytest.raises(NoValueError, match="cwnd: has no sample between 9 s and inf s"):
        basic.mean(run, "cwnd", from_=9)


def test_an_exponent_is_a_slope_of_logarithms() -> None:
    runs = [Made(parameters={"loss": x}, metrics={"g": 3.0 * x**-0.5}) for x in (0.001, 0.004, 0.01)]
    assert basic.power(runs, "g", by="loss") == pytest.approx(-0.5)
    with pytest.raises(NoValueError, match="no two values of loss"):
        basic.power(runs[:1], "g", by="loss")
    with pytest.raises(NoValueError, match="no two values of rtt"):
        basic.power(runs, "g", by="rtt")


@dataclass
class Choosing:
    """Gives all runs, and notes what was chosen."""

    made: Sequence[Made]
    asked: list[RunSelection] = field(default_factory=list)

    def runs(self, chosen: RunSelection) -> list[StudentRun]:
        self.asked.append(chosen)
        return list(self.made)  # type: ignore[arg-type]


def test_a_calls_words_are_the_measures_own_or_choose_runs() -> None:
    chooser = Choosing([Made(metrics={"rtt p95 of files": 0.2})])
    text = 'metric("rtt p95", step="files", buffer="1BDP", of="chosen", seed=7)'
    assert expressions.evaluate(text, {}, truths.functions(chooser)) == 0.2
    assert chooser.asked == [RunSelection("chosen", None, 7, {"buffer": "1BDP"})]


def test_one_run_must_be_left() -> None:
    chooser = Choosing([Made(), Made(number=2)])
    with pytest.raises(NoValueError, match="metric: 2 runs are so: all runs: say which"):
        expressions.evaluate('metric("rtt p95")', {}, truths.functions(chooser))


def test_a_measure_is_a_function_of_runs_with_a_name_of_its_own() -> None:
    with pytest.raises(TypeError, match="its first parameter is run or runs, not flows"):
        base.measure(lambda flows: 1.0)

    def metric(run: MeasuredRun) -> float:
        return 1.0

    with pytest.raises(TypeError, match="measure metric: there is one of this name"):
        base.measure(metric)

    def chosen(run: MeasuredRun, seed: int) -> float:
        return 1.0

    with pytest.raises(TypeError, match="measure chosen: seed choose runs"):
        base.measure(chosen)


def test_every_measure_says_what_it_is() -> None:
    for each in base.every().values():
        assert each.function.__doc__, each.name
        assert each.name not in expressions.MATHEMATICS, each.name
