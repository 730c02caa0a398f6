"""A run's schedule records the links that its payload crosses, and the analysis reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.analysis import load
from ewan.analysis.rundata import RunData
from ewan.generator.scenario.flow_paths import partners
from ewan.generator.scenario.kinds import Pattern
from ewan.generator.tests import schedules
from ewan.generator.tests.scenarios import parse, planned
from ewan.labs.base import codec
from ewan.labs.record.experiment import checksum
from ewan.labs.record.schedule import (
    CrossedLink,
    CrossedPath,
    NamedSchedule,
    to_json,
    unnamed_from_json,
    unnamed_to_json,
)

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
    recorded_paths = planned(run).document.paths
    return {
        (path.source, path.sink, path.role): [
            (hop.link, hop.direction) for hop in path.hops if hop.link.startswith("ring")
        ]
        for path in recorded_paths
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


PATHS = (
    CrossedPath("b", "a", "load", (CrossedLink("core", "forward", 10), CrossedLink("b-r1", "backward", None))),
    CrossedPath(None, None, "background", ()),
)
SCHEDULE = schedules.schedule(paths=PATHS)


def test_paths_are_read_back_and_their_keys_are_sorted() -> None:
    """The bytes of a schedule's paths, which experiments' checksums are of."""
    text = unnamed_to_json(SCHEDULE)
    assert json.dumps(orjson.loads(text)["paths"]) == (
        '[{"hops": [{"direction": "forward", "link": "core", "rate_bps": 10}, '
        '{"direction": "backward", "link": "b-r1", "rate_bps": null}], "role": "load", "sink": "a", "source": "b"}, '
        '{"hops": [], "role": "background", "sink": null, "source": null}]'
    )
    assert unnamed_from_json(text) == SCHEDULE.unnamed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"direction": "sideways"}, r"paths\[0\]\.hops\[0\]\.direction is 'sideways'"),
        ({"rate_bps": 1.5}, r"paths\[0\]\.hops\[0\]\.rate_bps is 1\.5"),
        ({"rate": 1}, r"paths\[0\]\.hops\[0\] has an unknown key 'rate'"),
    ],
)
def test_a_wrong_path_is_named(change: dict[str, Any], says: str) -> None:
    data = orjson.loads(to_json(SCHEDULE))
    data["paths"][0]["hops"][0] |= change
    with pytest.raises(ValueError, match=says):
        codec.from_data(NamedSchedule, data, "schedule")


def test_the_analysis_reads_the_loads_paths(tmp_path: Path) -> None:
    (tmp_path / "schedule.json").write_bytes(to_json(SCHEDULE))
    files = {"schedule.json": checksum(tmp_path / "schedule.json")}
    run = load.RunResults(1, "one", {}, 1, "complete", None, tmp_path, None, None, tmp_path, files)
    data = RunData.read(run)
    assert data.ways == {("b", "a"): (("core", "forward"), ("b-r1", "backward"))}
    assert data.rates_bps == {("core", "forward"): 10}
