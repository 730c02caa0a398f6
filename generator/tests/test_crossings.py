"""What a run's schedule records of the links that its payload crosses, and that the analysis reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis import load
from generator.scenario.crossings import partners
from generator.scenario.fields import Pattern
from generator.tests.test_scenario import parse, planned
from labs.record.experiment import checksum

LAB = """
lab:
  topology: {ring: {routers: 4}}
  rtt: 40ms
  links: {ring1: {delay: 50ms}}
seeds: 1
longest: 10s
steps:
"""
# From host1 to host2 the other three links are shorter than ring1.
AROUND = [("ring4", "backward"), ("ring3", "backward"), ("ring2", "backward")]
BACK = [("ring2", "forward"), ("ring3", "forward"), ("ring4", "forward")]


def recorded(step: str) -> dict[tuple[str | None, str | None, str], list[tuple[str, str]]]:
    (run,) = parse(LAB + f"  - {step}\n").runs()
    paths = planned(run).document["paths"]
    return {
        (path["source"], path["sink"], path["role"]): [
            (hop["link"], hop["direction"]) for hop in path["hops"] if hop["link"].startswith("ring")
        ]
        for path in paths
    }


def test_the_links_of_the_path_that_the_routes_take() -> None:
    step = "{name: load, from: host1, to: host2, for: 1s, %s}"
    assert recorded(step % "bulk: {}") == {("host1", "host2", "load"): AROUND}
    for both in ("requests: {request: 1kB, response: 1kB, think: 1ms}", "bidirectional: {}"):
        assert recorded(step % both) == {("host1", "host2", "load"): AROUND, ("host2", "host1", "load"): BACK}
    assert recorded(step % "role: background, bulk: {}") == {("host1", "host2", "background"): AROUND}


def test_of_messages_all_links_between_ranks_together() -> None:
    result = recorded("{name: load, ranks: 'host[1-2]', messages: {pattern: barrier, iterations: 3}}")
    assert {key: set(links) for key, links in result.items()} == {(None, None, "load"): {*AROUND, *BACK}}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("ping-pong", {(0, 1), (1, 0), (2, 3), (3, 2)}),
        ("neighbour-exchange", {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)}),
        ("all-to-all", {(a, b) for a in range(4) for b in range(4) if a != b}),
        ("barrier", {(a, (a + step) % 4) for a in range(4) for step in (1, 2)}),
    ],
)
def test_who_sends_to_whom_in_a_pattern(pattern: Pattern, expected: set[tuple[int, int]]) -> None:
    assert partners(pattern, 4) == expected


def test_the_analysis_reads_the_loads_paths(tmp_path: Path) -> None:
    hops: list[dict[str, Any]] = [{"link": "core", "direction": "forward", "rate_bps": 10}]
    paths = [
        {"source": "a", "sink": "b", "role": "load", "hops": hops},
        {"source": "b", "sink": "a", "role": "background", "hops": []},
    ]
    (tmp_path / "schedule.json").write_text(json.dumps({"paths": paths}))
    files = {"schedule.json": checksum(tmp_path / "schedule.json")}
    run = load.RunResults(1, "one", {}, 1, "complete", None, tmp_path, None, None, tmp_path, files)
    assert run.ways() == {("a", "b"): (("core", "forward"),)}
