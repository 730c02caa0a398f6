"""Applications over QUIC of each library, in the virtual clock: senders that an application limits, as the link counts
their bytes, and objects over HTTP/3, by their times."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from ewan.generator import counted_flows, external, records, scenario
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record import tables
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

RTT_NS = 20 * NS_PER_MS
LINK_BPS = 10_000_000
TEXT = """
lab: {topology: {dumbbell: {pairs: 5}}, rtt: 20ms, seed: 5, wan: {rate: 10Mbit/s, buffer: 100pkt}}
steps:
  - {name: quinn, from: left1, to: right1, for: 2.5s, quic: {rate: 2Mbit/s, on: 1s, off: 500ms}}
  - {name: aioquic, from: left2, to: right2, for: 2.5s, quic: {library: aioquic, rate: 2Mbit/s, on: 1s, off: 500ms}}
  - {name: s2n, from: left4, to: right4, for: 2.5s, quic: {library: s2n-quic, rate: 2Mbit/s, on: 1s, off: 500ms}}
  - {name: go, from: left5, to: right5, for: 2.5s, quic: {library: quic-go, rate: 2Mbit/s, on: 1s, off: 500ms}}
  - {name: chunks, at: 3s, from: left3, to: right3, quic: {volume: 200kB, chunk: 50kB, interval: 700ms}}
  - {name: beyond, at: 6s, from: left3, to: right3, for: 1s, quic: {rate: 40Mbit/s}}
  - {name: row, at: 8s, from: left1, to: right1, quic: {http3: {count: 5, size: 20kB}}}
  - {name: many, at: 9s, from: left3, to: right3, quic: {http3: {count: 12, size: {uniform: {low: 1kB, high: 60kB}}, parallel: 4}, qlog: true}}
  - {name: aiomany, at: 10s, from: left4, to: right4, quic: {library: aioquic, http3: {count: 12, size: {uniform: {low: 1kB, high: 60kB}}, parallel: 4}, qlog: true}}
  - {name: timed, at: 11s, from: left1, to: right1, for: 1s, quic: {http3: {size: 20kB}}}
count_flows: true
"""  # noqa: E501


class Run(NamedTuple):
    """`begin_ns`: when the schedule begins; `counted`: the rows of flows at links."""

    tables: dict[str, pl.DataFrame]
    begin_ns: int
    counted: pl.DataFrame

    def flow(self, step: str) -> dict[str, object]:
        (row,) = self.tables["flows"].filter(step=step).to_dicts()
        assert row["error"] is None
        return row

    def objects(self, step: str) -> list[dict[str, int]]:
        return self.tables["exchanges"].filter(flow=self.flow(step)["flow"]).sort("number").to_dicts()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = tmp_path_factory.mktemp("quic") / "run"
    (only,) = scenario.parse(TEXT, Path("x.scenario.yaml")).runs()
    plan = compile_spec(only.spec, HostFacts((0, 1), (), "virtual"))
    schedule = only.schedule(plan, "virtual")
    VirtualRuntime(BINARY).run(plan, schedule.program, directory)
    document = schedule.document
    links = records.csv(directory / "link_flows.csv", "link_flows")
    counted = counted_flows.numbered(document, links, (), tables.empty("command_sockets"))
    return Run(external.rows(document, directory), document.begin_ns, counted)


@pytest.mark.parametrize("step", ["quinn", "aioquic", "s2n", "go"])
def test_bytes_at_the_link_follow_the_law_of_the_application(run: Run, step: str) -> None:
    """On for a second, off for half of one: 25 kB in each 100 ms, and nothing."""
    flow = run.flow(step)
    rows = run.counted.filter(flow=flow["flow"], direction="forward").sort("time_ns")
    since = {row["time_ns"] - run.begin_ns: row["payload_bytes"] for row in rows.to_dicts()}

    def between(begin_ms: int, end_ms: int) -> int:
        """Bytes of UDP payload that left the link."""
        until = [max((each for each in since if each <= ms * NS_PER_MS), default=None) for ms in (begin_ms, end_ms)]
        before, after = (0 if each is None else since[each] for each in until)
        return after - before

    # A write has 1448 bytes, and packets have headers of at most a twentieth of theirs.
    for begin_ms in (300, 400, 500, 600, 700, 800, 1700, 1900, 2100):
        assert 25_000 - 2 * 1448 <= between(begin_ms, begin_ms + 100) <= 1.07 * (25_000 + 2 * 1448)
    assert between(1100, 1400) < 1000
    # From 0 to 1 s and from 1.5 s to 2.5 s.
    assert abs(flow["received_bytes"] - 500_000) <= 3 * 1448  # type: ignore[operator]


def test_chunks_come_at_their_intervals(run: Run) -> None:
    flow = run.flow("chunks")
    goodput = run.tables["goodput"].filter(pl.col("flow") == flow["flow"], pl.col("delivered_bytes") > 0)
    since_ns = flow["scheduled_ns"]
    begins = [(row["time_ns"] - row["bin_ns"] - since_ns) // (100 * NS_PER_MS) for row in goodput.to_dicts()]
    assert {0, 7, 14, 21} <= set(begins) <= {0, 1, 7, 8, 14, 15, 21, 22}
    assert goodput["delivered_bytes"].sum() == flow["received_bytes"] == 200_000
    # The last chunk is written after 2.1 s.
    assert 2.1 * NS_PER_SECOND < flow["completion_ns"] < 2.3 * NS_PER_SECOND  # type: ignore[operator]


def test_an_application_faster_than_the_link_fills_it(run: Run) -> None:
    assert 0.7 * LINK_BPS < run.flow("beyond")["goodput_bps"] < LINK_BPS  # type: ignore[operator]


def test_objects_in_a_row_begin_where_the_last_one_ended(run: Run) -> None:
    objects = run.objects("row")
    assert [each["received_bytes"] for each in objects] == [20_000] * 5
    ends = [each["start_ns"] + each["duration_ns"] for each in objects]
    assert all(0 <= each["start_ns"] - end < NS_PER_MS for each, end in zip(objects[1:], ends, strict=False))
    # A round trip and the time of 20 kB at the link; the first ones take round trips of slow start.
    least_ns = RTT_NS + 20_000 * 8 * NS_PER_SECOND // LINK_BPS
    assert all(least_ns < each["duration_ns"] < least_ns + 3 * RTT_NS for each in objects)
    assert objects[-1]["duration_ns"] < 1.15 * least_ns
    flow = run.flow("row")
    assert flow["volume_bytes"] == flow["received_bytes"] == 100_000
    assert abs(flow["scheduled_ns"] + flow["completion_ns"] - ends[-1]) < NS_PER_MS  # type: ignore[operator]


@pytest.mark.parametrize("step", ["many", "aiomany"])
def test_four_objects_are_on_their_way_at_a_time(run: Run, step: str) -> None:
    objects = run.objects(step)
    assert len(objects) == 12
    times = [(each["start_ns"], 1) for each in objects]
    times += [(each["start_ns"] + each["duration_ns"], -1) for each in objects]
    open_now = most = 0
    for _, change in sorted(times):
        open_now += change
        most = max(most, open_now)
    assert most == 4
    flow = run.flow(step)
    sizes = [each["received_bytes"] for each in objects]
    assert flow["volume_bytes"] == flow["received_bytes"] == sum(sizes)
    assert min(sizes) >= 1000 and max(sizes) <= 60_000 and len(set(sizes)) > 6
    # What the server says it sent, its client received: nothing was lost of what came last.
    assert flow["sent_packets"] - flow["received_packets"] == flow["lost_packets"] >= 0  # type: ignore[operator]
    series = run.tables["series"].filter(flow=flow["flow"])
    assert series.height >= 2 and series["in_flight_segments"].null_count() == 0


def test_a_time_ends_objects_without_a_count(run: Run) -> None:
    flow, objects = run.flow("timed"), run.objects("timed")
    assert len(objects) > 15 and flow["completion_ns"] is None and flow["volume_bytes"] is None
    assert sum(each["received_bytes"] for each in objects) <= flow["received_bytes"]  # type: ignore[operator]


def test_the_link_knows_flows_of_objects_by_their_client(run: Run) -> None:
    for step in ("row", "aiomany"):
        flow = run.flow(step)
        forward = run.counted.filter(flow=flow["flow"], direction="forward").sort("time_ns")
        assert forward["in_packets"][-1] == flow["sent_packets"]
