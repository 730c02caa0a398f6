"""Limits of a scenario's size: a scenario that is too large is refused before it is made, with the number and the
limit."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ewan.generator import scenario
from ewan.generator.scenario import DescriptionError
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.spec.patterns import PatternError, expand, members

pytestmark = pytest.mark.slow

FACTS = HostFacts((0, 1), (), "virtual")
AT_ONCE_S = 5  # of CPU; each takes a fraction of it
LAB = "lab: {topology: {dumbbell: {pairs: 3}}, rtt: 20ms, wan: {rate: 10Mbit/s}}\n"
ALL = "from: left1, to: right1"


def steps(*texts: str) -> str:
    return "steps:\n" + "".join(f"  - {{name: s{number}, {text}}}\n" for number, text in enumerate(texts))


TOO_MUCH = {
    "streams times rounds": (
        steps(f"{ALL}, streams: 1000, bulk: 1MB, repeat: {{times: 100000, every: 1s}}"),
        "x.scenario.yaml:3: steps[0]: is 100000000 flows or commands (1 members × 100000 rounds × 1000 streams): "
        "write at most 16384 in all",
    ),
    "several steps": (
        steps(*[f"{ALL}, streams: 1000, bulk: 1MB, repeat: {{times: 6, every: 1s}}"] * 3),
        "steps[2]: is 6000 flows or commands (1 members × 6 rounds × 1000 streams), with the steps before it 18000",
    ),
    "commands": (
        steps("on: left1, run: date, repeat: {times: 100000, every: 1s}"),
        "steps[0]: is 100000 flows or commands",
    ),
    "exchanges": (
        steps(f"{ALL}, repeat: {{times: 10, every: 1s}}, requests: {{count: 9000000, request: 1kB, response: 1kB}}"),
        "steps[0]: brings them to 90000000 arrivals, requests, objects, frames and iterations of ranks: write at most "
        "10000000 in all",
    ),
    "frames": (
        steps("from: 'left[1-3]', to: 'right[1-3]', for: 86400s, media: {fps: 240}"),
        "steps[0]: brings them to 62208000 arrivals, requests, objects, frames and iterations of ranks",
    ),
    "iterations": (
        steps("ranks: 'left[1-3]', messages: {pattern: all-to-all, iterations: 9000000, size: 1kB}"),
        "steps[0]: brings them to 27000000 arrivals",
    ),
    "points": (
        f"parameters: {{a: 1, b: 1, c: 1}}\nsweep: {{a: {list(range(400))}, b: {list(range(400))}, "
        f"c: {list(range(400))}}}\n" + steps(f"{ALL}, streams: 2, bulk: 1MB"),
        "sweep: stands for 64000000 runs of each seed: write at most 100000",
    ),
    "brackets": (
        steps("from: 'left[1-9999][1-9999][1-9999]', to: right1, bulk: 1MB"),
        "names 99980001 members and more: write at most 20000",
    ),
    "all runs together": (
        f"parameters: {{a: 1}}\nsweep: {{a: {list(range(1, 11))}}}\nseeds: 100\n"
        + steps(f"{ALL}, streams: 1000, bulk: 1MB, mss: '14${{a}}'"),
        "sweep: 1 of 10 points have 10",
    ),
}


@pytest.mark.parametrize(("text", "message"), TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_what_is_too_much_is_refused_before_it_is_made(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ewan.generator.scenario.runs.MOST_WORK", 100_000)
    begun = time.process_time()
    with pytest.raises(DescriptionError) as refusal:
        list(scenario.parse(LAB + text, Path("x.scenario.yaml")).runs().scheduled(FACTS, "virtual"))
    assert message in str(refusal.value)
    assert time.process_time() - begun < AT_ONCE_S


def test_the_command_line_asks_for_no_more_seeds_than_runs() -> None:
    result = scenario.parse(LAB + steps(f"{ALL}, bulk: 1MB"), Path("x.scenario.yaml"))
    with pytest.raises(DescriptionError, match="stands for 1 points of 10000000000 seeds: write at most 100000 runs"):
        result.runs(seeds=10**10)


def test_a_list_of_names_is_bounded_and_looked_up_at_once() -> None:
    nodes = [f"n{number}" for number in range(20_000)]
    begun = time.process_time()
    assert members("n[0-19999]", {}, nodes) == nodes
    with pytest.raises(PatternError, match="names 40000 members and more: write at most 20000"):
        members(["n[0-19999]"] * 1000, {}, nodes)
    with pytest.raises(PatternError, match="write at most 20000"):
        members("all", {"all": ["n[0-19999]"] * 1000}, nodes)
    assert time.process_time() - begun < 1


def test_many_brackets_in_one_name() -> None:
    assert expand("a" + "[1]" * 3000) == ["a" + "1" * 3000]
    assert expand("a[1-2]b[3,5]") == ["a1b3", "a1b5", "a2b3", "a2b5"]


def test_thousands_of_events_are_compiled_one_after_the_other() -> None:
    events = "".join(
        f"  - {{at: {number + 1}ms, link: core, rate: {10 + number % 2}Mbit/s}}\n" for number in range(4000)
    )
    text = f"{LAB}longest: 60s\nevents:\n{events}" + steps(f"{ALL}, for: 10s, bulk: ")
    begun = time.process_time()
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    made = run.schedule(compile_spec(run.spec, FACTS), "virtual").program.events
    assert len(made) == 8000
    assert time.process_time() - begun < 2 * AT_ONCE_S
