"""UDT and D-ITG's TCP themselves, in the virtual clock, from a scenario to rows: what the link's own counters say they
should have found, and what fits a link.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.generator import external, scenario
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

LINK_BPS = 10_000_000
PAYLOAD, FRAME = 1456, 1538
TEXT = """
lab: {topology: {dumbbell: {pairs: 2}}, rtt: 20ms, wan: {rate: 10Mbit/s, buffer: 40pkt}}
defaults: {generator: udt}
steps:
  - {name: volume, from: left1, to: right1, bulk: 2MB}
  - {name: timed, at: 5s, from: left2, to: right2, for: 6s, bulk: }
  - {name: reno, at: 12s, generator: ditg, congestion: reno, from: left1, to: right1, for: 2s, bulk: }
  - {name: cubic, at: 15s, generator: ditg, congestion: cubic, from: left2, to: right2, for: 2s, bulk: }
  # Not of those that a stock kernel lets every namespace take.
  - {name: htcp, at: 18s, generator: ditg, congestion: htcp, from: right1, to: left1, for: 2s, bulk: }
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, Any]], dict[str, Any], Any]:
    (only,) = scenario.parse(TEXT, Path("x.scenario.yaml")).runs()
    plan = compile_spec(only.spec, HostFacts((0, 1), (), "virtual"))
    schedule = only.schedule(plan, "virtual")
    directory = tmp_path_factory.mktemp("udt") / "run"
    VirtualRuntime(BINARY).run(plan, schedule.program, directory)
    links = orjson.loads((directory / "links.json").read_bytes())["links"]
    (forward,) = [link for link in links if link["direction"] == "forward"]
    rows = external.rows(schedule.document, directory)
    return {row["step"]: row for row in rows["flows"].to_dicts()}, forward, rows["goodput"]


def test_a_volume_arrives_whole_and_not_before_it_can(run: Any) -> None:
    flows, _, _ = run
    row = flows["volume"]
    assert row["error"] is None and row["received_bytes"] == 2_000_000
    least_s = 2_000_000 / PAYLOAD * FRAME * 8 / LINK_BPS + 0.010
    assert least_s < row["completion_ns"] / 1e9 < 2.5 * least_s
    assert row["started_ns"] == row["scheduled_ns"]


def test_what_it_counts_as_lost_is_what_the_queue_dropped(run: Any) -> None:
    flows, link, _ = run
    found = flows["volume"]["lost_packets"]
    # What others lost comes on top.
    assert 0 < found <= link["drops"]["queue_full"]
    assert flows["volume"]["lost_packets"] == flows["volume"]["retransmitted_segments"]


def test_it_takes_most_of_a_link_and_no_more_than_fits(run: Any) -> None:
    flows, _, goodput = run
    most = LINK_BPS * PAYLOAD / FRAME
    row = flows["timed"]
    assert 0.6 * most < row["goodput_bps"] <= most
    last = goodput.filter(flow=1).tail(20)
    arrived_bps = last["arrived_bytes"].sum() * 8e9 / last["bin_ns"].sum()
    assert 0.8 * most < arrived_bps <= 1.01 * most
    assert row["ended_ns"] - row["started_ns"] == pytest.approx(6e9, abs=50 * NS_PER_MS)


@pytest.mark.parametrize("step", ["reno", "cubic", "htcp"])
def test_the_tcp_of_ditg_fills_the_link(run: Any, step: str) -> None:
    """Segments of 1448 B of payload, whose congestion control is the node's."""
    flows, _, goodput = run
    row = flows[step]
    assert row["error"] is None and row["sent_packets"] is None and row["completion_ns"] is None
    assert 0.85 * LINK_BPS * 1448 / FRAME < row["goodput_bps"] <= LINK_BPS * 1448 / FRAME
    assert goodput.filter(flow=row["flow"])["delivered_bytes"].sum() == row["received_bytes"]
