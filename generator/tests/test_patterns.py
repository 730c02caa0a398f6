"""Patterns of nodes' names, and laws: their meaning, and the words of refusals."""

from __future__ import annotations

import random
from statistics import fmean, pstdev

import pytest
from pydantic import ValidationError

from ewan.generator.scenario.laws import SizeLaw, TimeLaw, draw, mean, request
from ewan.labs.record.traffic import ConstantLaw, ParetoLaw
from ewan.labs.spec.patterns import PatternError, expand, members

NODES = {f"{side}{number}": True for side in ("left", "right") for number in range(1, 13)}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("left1", ["left1"]),
        ("left[1-3]", ["left1", "left2", "left3"]),
        ("left[1,3-5]", ["left1", "left3", "left4", "left5"]),
        ("left[9-11]", ["left9", "left10", "left11"]),
        ("left[4+2]", ["left4", "left5"]),
        ("left[1-0]", []),
        ("left[4+0]", []),
        ("in[1-2]-[1-2]", ["in1-1", "in1-2", "in2-1", "in2-2"]),
    ],
)
def test_a_pattern_stands_for_names(pattern: str, names: list[str]) -> None:
    assert expand(pattern) == names


def test_lists_commas_and_roles_come_in_the_order_written() -> None:
    roles = {"senders": "left[1-2],right1"}
    assert members(("right3", "senders"), roles, NODES) == ["right3", "left1", "left2", "right1"]
    assert members("left[1,2],right1", {}, NODES) == ["left1", "left2", "right1"]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("left[3-1]", 'counts down: write "[1-3]"'),
        ("left[a-b]", "is no range: write one like"),
        ("left[1-3", "write names of nodes like"),
        ("left[1-100000]", "has 100000 members: write at most 20000"),
        ("left99", 'there is no node left99 in the lab: write "left9"'),
        ("senders", "there is no node senders in the lab: write one of left1, left2"),
    ],
)
def test_a_wrong_pattern_is_refused_with_what_to_write(pattern: str, said: str) -> None:
    with pytest.raises(PatternError) as refused:
        members(pattern, {}, NODES)
    assert said in str(refused.value)


LAWS = [
    ("10ms", 10e6, 0),
    ({"uniform": {"low": "0ms", "high": "20ms"}}, 10e6, 20e6 / 12**0.5),
    ({"exponential": {"mean": "10ms"}}, 10e6, 10e6),
    ({"pareto": {"mean": "10ms", "shape": "3.5"}}, 10e6, 10e6 / (3.5 * 1.5) ** 0.5),
    ({"weibull": {"mean": "10ms", "shape": 2}}, 10e6, 5.2272e6),  # √(Γ(2)/Γ(1.5)² - 1)
    ({"normal": {"mean": "10ms", "deviation": "2ms"}}, 10e6, 2e6),
    ({"gamma": {"mean": "10ms", "shape": 4}}, 10e6, 5e6),
]


@pytest.mark.parametrize(("written", "expected", "deviation"), LAWS, ids=lambda value: str(value))
def test_draws_have_the_mean_and_the_deviation_of_their_law(written: object, expected: float, deviation: float) -> None:
    law = TimeLaw.model_validate(written)
    stream = random.Random("laws")
    drawn = [draw(law, stream) for _ in range(40_000)]
    assert mean(law) == pytest.approx(expected)
    assert fmean(drawn) == pytest.approx(expected, rel=0.02)
    assert pstdev(drawn) == pytest.approx(deviation, rel=0.1, abs=1)
    assert min(drawn) >= 0


def test_the_same_seed_draws_the_same_and_most_cuts() -> None:
    law = TimeLaw.model_validate({"exponential": {"mean": "10ms", "most": "12ms"}})
    first, second = ([draw(law, random.Random("1 web")) for _ in range(3)] for _ in range(2))
    assert first == second
    stream = random.Random("1 web")
    assert max(draw(law, stream) for _ in range(1000)) == 12_000_000


def test_laws_are_written_for_the_generator_in_whole_ns_and_bytes() -> None:
    size = SizeLaw.model_validate({"pareto": {"mean": "100kB", "shape": "1.3", "most": "10MB"}})
    assert request(size) == ParetoLaw(100_000, 1.3, 10_000_000)
    assert request(TimeLaw.model_validate("20us")) == ConstantLaw(20_000)
    assert request(SizeLaw.model_validate("8kbit")) == ConstantLaw(1000)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"pareto": {"mean": "1s", "shape": 1}}, 'has no mean: write a "shape" above 1'),
        ({"exponential": {"mean": "0s"}}, 'exponential has no mean of 0: write a larger "mean"'),
        ({"uniform": {"low": "2s", "high": "1s"}}, 'uniform is from less to more: write a "high" above "2s"'),
        ({"pareto": {"mean": "1s", "shape": 2, "most": "100ms"}}, '"most" of 100ms is below all that pareto draws'),
        ({"weibull": {"mean": "1s", "shape": "0"}}, "write a number above 0 without a unit"),
        ("100", 'write a duration as "100ms"'),
    ],
)
def test_a_law_that_cannot_be_is_refused(written: object, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TimeLaw.model_validate(written)
    assert said in str(refused.value)
