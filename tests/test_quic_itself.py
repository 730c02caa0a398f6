"""QUIC of each library itself, in the virtual clock: what it says it sent is what was captured, packet by packet.

A link of 10 Mbit/s loses 0.3 % of the packets, and later lets some overtake others; each transfer has both ends
captured and their qlog."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson
import polars as pl
import pytest

from ewan.generator import counted_flows, external, readers, records, scenario
from ewan.generator.external import qlog
from ewan.generator.rows import frame_of
from ewan.generator.scenario import ScheduledRun
from ewan.labs.base.units import NS_PER_MS, NS_PER_US
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

LINK_BPS = 10_000_000
LEAST_FIRST = 1200  # RFC 9000, section 14.1
TEXT = """
lab:
  topology: {dumbbell: {pairs: 2}}
  rtt: 20ms
  seed: 5
  wan: {rate: 10Mbit/s, buffer: 40pkt, loss: 0.3%}
steps:
  - {name: quinn, from: left1, to: right1, streams: 2, quic: {volume: 2MB, qlog: true}}
  - {name: aioquic, at: 6s, from: left2, to: right2, quic: {library: aioquic, volume: 1MB, qlog: true}}
  - {name: s2n, at: 9s, from: left1, to: right1, streams: 2, quic: {library: s2n-quic, volume: 1MB}}
  - {name: go, at: 9s, from: left2, to: right2, streams: 2, quic: {library: quic-go, volume: 1MB}}
  - {name: timed, at: 12s, from: left2, to: right2, for: 2s, quic: {congestion: newreno}}
  - {name: overtaken, at: 15s, from: left1, to: right1, quic: {volume: 500kB, qlog: true}}
  - {name: nobody, at: 19s, from: left1, to: right1, for: 1s, quic: {congestion: bbr}}
events: [{at: 14.5s, link: core, jitter: 3ms, reorder: true}, {at: 18.5s, link: core, down: true}]
capture: [{node: left1}, {node: right1}, {node: left2}, {node: right2}]
count_flows: true
"""


class End(NamedTuple):
    """One end of a transfer: its node, its record, and the folder with its qlog."""

    node: str
    streams: list[dict[str, Any]]
    files: Path


class Run(NamedTuple):
    """`ends`: sender and receiver by the name of their step; `ports`: where their receiver listens; `counted`: the last
    row of each flow at the link."""

    directory: Path
    tables: dict[str, pl.DataFrame]
    packets: pl.DataFrame
    ends: dict[str, dict[str, End]]
    ports: dict[str, int]
    counted: pl.DataFrame

    def flows(self, step: str) -> list[dict[str, Any]]:
        return self.tables["flows"].filter(step=step).sort("flow").to_dicts()


def ran(directory: Path) -> ScheduledRun:
    (only,) = scenario.parse(TEXT, Path("x.scenario.yaml")).runs()
    plan = compile_spec(only.spec, HostFacts((0, 1), (), "virtual"))
    schedule = only.schedule(plan, "virtual")
    VirtualRuntime(BINARY).run(plan, schedule.program, directory)
    return schedule


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = tmp_path_factory.mktemp("quic") / "run"
    document = ran(directory).document
    ran_commands = orjson.loads((directory / "commands.json").read_bytes())["commands"]
    ends: dict[str, dict[str, End]] = {}
    ports = {}
    for each in document.commands:
        if each.tool is not None:
            own = ran_commands[each.index]
            streams = orjson.loads((directory / own["out"]).read_bytes())["streams"]
            ends.setdefault(each.step, {})[each.part] = End(each.node, streams, directory / own["files"])
            ports[each.step] = int(own["argv"][own["argv"].index("--port") + 1])
    packets = readers.results(document, directory).tables["packets"]
    links = records.csv(directory / "link_flows.csv", "link_flows")
    counted = counted_flows.numbered(document, links, (), frame_of((), "command_sockets"))
    last = counted.group_by("link", "direction", "entry", maintain_order=True).last()
    return Run(directory, external.rows(document, directory), packets, ends, ports, last)


@pytest.mark.parametrize(
    ("step", "volume"),
    [("quinn", 2_000_000), ("aioquic", 1_000_000), ("s2n", 1_000_000), ("go", 1_000_000), ("overtaken", 500_000)],
)
def test_a_volume_arrives_whole_and_not_before_it_can(run: Run, step: str, volume: int) -> None:
    rows = run.flows(step)
    assert {row["error"] for row in rows} == {None}
    assert sum(row["received_bytes"] for row in rows) == volume
    # Python reads its modules before, and the virtual clock makes it pay for that; a thread of Go wakes up the others.
    late_ns = {"aioquic": 2 * NS_PER_MS, "go": 50 * NS_PER_US}.get(step, 0)
    assert all(0 <= row["started_ns"] - row["scheduled_ns"] <= late_ns for row in rows)
    assert volume * 8 / LINK_BPS < max(row["completion_ns"] for row in rows) / 1e9 < 5
    goodput = run.tables["goodput"].filter(pl.col("flow").is_in([row["flow"] for row in rows]))
    assert goodput["delivered_bytes"].sum() == volume
    # s2n-quic and quic-go do not tell what arrived out of order.
    assert goodput["arrived_bytes"].sum() == (0 if step in ("s2n", "go") else volume)


@pytest.mark.parametrize("step", ["quinn", "aioquic", "s2n", "go", "timed"])
def test_what_a_library_says_it_sent_and_received_was_captured(run: Run, step: str) -> None:
    """Datagrams, and bytes in them, at both ends and both ways."""
    port = run.ports[step]
    own = run.packets.filter((pl.col("source_port") == port) | (pl.col("destination_port") == port))
    for end in run.ends[step].values():
        for said, direction in (("udp_sent", "out"), ("udp_received", "in")):
            captured = own.filter(node=end.node, direction=direction)
            assert captured.height == sum(stream[said]["datagrams"] for stream in end.streams) > 100
            assert captured["payload_bytes"].sum() == sum(stream[said]["bytes"] for stream in end.streams)


@pytest.mark.parametrize("step", ["quinn", "aioquic", "s2n", "go", "timed", "overtaken"])
def test_the_link_counted_what_a_library_says_it_sent_and_received(run: Run, step: str) -> None:
    port, ends = run.ports[step], run.ends[step]
    numbers = {row["flow"] for row in run.flows(step)}
    for end, direction, own_port in (("client", "forward", "destination_port"), ("server", "backward", "source_port")):
        peer = "server" if end == "client" else "client"
        counted = run.counted.filter(pl.col(own_port) == port, direction=direction)
        sent = sum(stream["udp_sent"]["datagrams"] for stream in ends[end].streams)
        received = sum(stream["udp_received"]["datagrams"] for stream in ends[peer].streams)
        assert (counted["in_packets"].sum(), counted["sent_packets"].sum()) == (sent, received)
        assert counted["payload_bytes"].sum() == sum(stream["udp_received"]["bytes"] for stream in ends[peer].streams)
        # Of a transfer of several connections the link does not know which is which.
        known = numbers if end == "client" and len(numbers) == 1 else {None}
        assert set(counted["flow"]) == known


@pytest.mark.parametrize("step", ["quinn", "aioquic", "overtaken"])
def test_its_qlog_has_each_packet_of_its_datagrams(run: Run, step: str) -> None:
    """All that was declared lost is accounted for: it did not arrive, or it is listed as declared for nothing."""
    client, server = run.ends[step]["client"], run.ends[step]["server"]
    for row, stream in zip(run.flows(step), client.streams, strict=True):
        name = stream["stream"]
        own, peer = qlog.read(client.files, f"send-{name}"), qlog.read(server.files, f"receive-{name}")
        # aioquic does not count the padding of a datagram that opens a connection as its packet's.
        padding = LEAST_FIRST - own.sent[0][1]
        assert own.sent_bytes + padding == stream["udp_sent"]["bytes"]
        # Two packets are in one datagram only while the connection is made.
        assert 0 <= len(own.sent) - stream["udp_sent"]["datagrams"] <= 3
        missing = {packet for packet, _ in own.sent} - peer.received
        false = qlog.spurious(own, peer)
        assert own.lost and set(own.lost) == (set(own.lost) & missing) | set(false)
        assert len(own.lost) >= row["retransmitted_segments"] and row["copied_segments"] == len(false)
        assert len(missing) >= row["lost_packets"]
        assert (len(false) > len(own.lost) / 2) == (step == "overtaken")


def test_the_senders_state_is_a_series(run: Run) -> None:
    for step in ("quinn", "aioquic", "s2n", "go", "timed"):
        for row in run.flows(step):
            series = run.tables["series"].filter(flow=row["flow"])
            assert series.height > 3 and series.select((pl.col("cwnd_segments") >= 1).all()).item()
            assert series.select((pl.col("srtt_ns") >= 10 * NS_PER_MS).all()).item()
            # Without qlog quinn does not tell, and quic-go does not.
            assert series["in_flight_segments"].is_null().all() == (step in ("go", "timed"))


def test_a_time_ends_a_transfer_and_one_that_nobody_hears_is_an_error(run: Run) -> None:
    (timed,) = run.flows("timed")
    assert timed["error"] is None and timed["completion_ns"] is None
    assert 0.5 * LINK_BPS < timed["goodput_bps"] < LINK_BPS
    assert 0 <= timed["ended_ns"] - timed["scheduled_ns"] - 2e9 < 60 * NS_PER_MS
    (nobody,) = run.flows("nobody")
    assert nobody["error"] == "quinn: ended before it was connected"


def test_the_same_seed_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    """Records, qlog and captured packets."""
    again = tmp_path / "again"
    ran(again)
    files = [path.relative_to(run.directory) for path in (run.directory / "commands").rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [each for each in files if (run.directory / each).read_bytes() != (again / each).read_bytes()] == []
