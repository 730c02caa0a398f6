"""iperf3 and D-ITG themselves, in the virtual clock, from a scenario to rows: what the captured outputs of
generator/tests/tools were, the tools installed here still say. Tolerances are of physics: rates, delays, what fits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ewan.generator import external, scenario
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

SCENARIO = Path(__file__).parents[1] / "generator/tests/tools/tools.scenario.yaml"
LINK_BPS = 10_000_000
PAYLOAD = 1448 / 1538


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    (run,) = scenario.load(SCENARIO).runs()
    plan = compile_spec(run.spec, HostFacts((0, 1), (), "virtual"))
    schedule = run.schedule(plan, "virtual")
    directory = tmp_path_factory.mktemp("tools") / "run"
    VirtualRuntime(BINARY).run(plan, schedule.program, directory)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in external.rows(schedule.document, directory)["flows"].to_dicts():
        found.setdefault(row["step"], []).append(row)
    return found


def test_only_what_must_fail_fails(flows: dict[str, list[dict[str, Any]]]) -> None:
    assert {step for step, rows in flows.items() if any(row["error"] for row in rows)} == {"refused"}


def test_two_streams_of_iperf3_fill_the_link(flows: dict[str, list[dict[str, Any]]]) -> None:
    assert sum(row["goodput_bps"] for row in flows["streams"]) == pytest.approx(LINK_BPS * PAYLOAD, rel=0.05)
    for row in flows["streams"]:
        assert row["started_ns"] - row["scheduled_ns"] < NS_PER_MS


@pytest.mark.parametrize(("step", "seconds"), [("flood", 1.0), ("overload", 0.3)])
def test_both_tools_count_the_packets_that_fit(
    flows: dict[str, list[dict[str, Any]]], step: str, seconds: float
) -> None:
    """12 Mbit/s of packets that count 1066 B on a link of 10 Mbit/s with a queue of 20."""
    (row,) = flows[step]
    assert row["received_packets"] == pytest.approx(seconds * LINK_BPS / 8 / 1066 + 20, abs=5)
    assert row["lost_packets"] == pytest.approx(seconds * 1500 - row["received_packets"], abs=5)


def test_delays_of_ditg_are_those_of_the_path(flows: dict[str, list[dict[str, Any]]]) -> None:
    (row,) = flows["poisson"]
    assert 10 * NS_PER_MS <= row["delay_min_ns"] <= row["delay_p50_ns"] < 13 * NS_PER_MS
