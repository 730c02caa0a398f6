"""QUIC: the commands of its two ends, its refusals, the rows of their records and their qlog.

The records are written here; tests/test_quic_itself.py has those of the libraries."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import pytest

from ewan.experiments.engine import reservation
from ewan.experiments.tests.engines import TEXT, jobs
from ewan.generator import external, scenario
from ewan.generator.external import qlog, quic, quinn
from ewan.generator.external.transfer import Output
from ewan.generator.quic.ewan_aioquic import writes
from ewan.generator.rows import Row, Rows
from ewan.generator.scenario import ScenarioRun, ScheduledRun
from ewan.generator.tests import schedules
from ewan.labs.base import codec
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record.schedule import QuicTool
from ewan.labs.runtime.base import LabError

BIN_NS = 100 * NS_PER_MS


def run_of(text: str) -> ScenarioRun:
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    return run


def scheduled(words: str, more: str = "") -> ScheduledRun:
    run = run_of(f"lab: dumbbell\nsteps: [{{name: a, from: left1, to: right1, {words}}}]\n{more}")
    return run.schedule(compile_spec(run.spec, HostFacts((0, 1), (), "virtual")), "virtual")


def test_both_ends_start_early_and_the_sender_waits() -> None:
    schedule = scheduled("at: 1s, for: 2s, quic: {congestion: bbr, qlog: true}, window: 4MB", "sample: 20ms")
    server, client = schedule.program.commands
    assert (server.node, client.node, server.service) == ("right1", "left1", True)
    assert server.at_ns == client.at_ns == NS_PER_SECOND - quic.LEAD_NS
    words = " ".join(client.argv)
    assert "--congestion bbr --sample-ns 20000000 --at-ns 1000000000 --for-ns 2000000000" in words
    assert "--qlog on" in words and "--window 4000000 " in " ".join((*server.argv, ""))
    (flow,) = schedule.document.flows
    # A control of a library is none of the kernel's.
    assert (flow.kind, flow.generator, flow.congestion) == ("quic", "quinn", None)


def test_a_sender_that_waits_for_a_step_counts_from_its_own_start() -> None:
    run = run_of(
        "lab: dumbbell\nsteps:\n- {name: a, from: left1, to: right1, bulk: 1MB}\n"
        "- {name: b, after: a, at: 1s, from: left1, to: right1, quic: 1MB}\n"
    )
    schedule = run.schedule(compile_spec(run.spec, HostFacts((0, 1), (), "virtual")), "virtual")
    client = schedule.program.commands[1]
    assert client.at_ns == NS_PER_SECOND - quic.LEAD_NS
    assert "--after-ns 100000000" in " ".join(client.argv) and "--at-ns" not in client.argv


def test_parallel_connections_share_the_volume_of_a_short_form() -> None:
    schedule = scheduled("streams: 3, quic: 1MB", "defaults: {congestion: bic, generator: iperf3}")
    assert [flow.volume_bytes for flow in schedule.document.flows] == [333_334, 333_333, 333_333]
    assert schedule.program.commands[1].argv.count("--bytes") == 3
    assert [flow.tool for flow in schedule.document.flows] == [QuicTool(0, n, "cubic", False) for n in range(3)]


def test_the_application_of_a_sender_has_the_laws_of_bulk() -> None:
    words = "{{library: {}, volume: 1MB, chunk: 20kB, interval: {{exponential: {{mean: 50ms}}}}, on: 1s, off: 2s}}"
    for library in ("quinn", "aioquic"):
        argv = scheduled(f"quic: {words.format(library)}").program.commands[1].argv
        assert json.loads(argv[argv.index("--writes") + 1]) == {
            "size_bytes": {"law": "constant", "value": 20_000},
            "interval_ns": {"law": "exponential", "mean": 50 * NS_PER_MS},
            "on_ns": {"law": "constant", "value": NS_PER_SECOND},
            "off_ns": {"law": "constant", "value": 2 * NS_PER_SECOND},
        }
        assert int(argv[argv.index("--seed") + 1]) > 0


def test_the_sink_gets_objects_of_the_source_over_http3() -> None:
    schedule = scheduled("for: 9s, quic: {http3: {size: 10kB, count: 30, parallel: 4}, qlog: true}, window: 4MB")
    server, client = schedule.program.commands
    assert (server.node, client.node, server.service) == ("left1", "right1", True)
    assert server.argv[1] == "serve" and "--congestion cubic" in " ".join(server.argv)
    words = " ".join(client.argv)
    assert client.argv[1] == "get" and server.argv[3] == client.argv[3]
    assert "--parallel 4" in words and "--count 30" in words and "--window 4000000" in words and "--for-ns" in words
    (flow,) = schedule.document.flows
    assert (flow.source, flow.sink, flow.volume_bytes) == ("left1", "right1", 300_000)
    assert flow.tool == QuicTool(0, 0, "cubic", True, True)


def test_ten_thousand_objects_are_one_short_command() -> None:
    (_, client) = scheduled("quic: {http3: {size: {uniform: {low: 1kB, high: 9kB}}, count: 10000}}").program.commands
    assert len(" ".join(client.argv)) < 400
    with pytest.raises(DescriptionError, match="objects, frames and iterations of ranks: write at most 10000000"):
        scheduled("repeat: {times: 2, every: 1s}, quic: {http3: {size: 1kB, count: 9000000}}")


def test_a_metric_of_requests_is_one_of_objects_too() -> None:
    text = "lab: dumbbell\nseeds: 5\nstop: {{metric: mean response time, within: 5%}}\n"
    text += "steps: [{{name: a, from: left1, to: right1, quic: {}}}]\n"
    scenario.parse(text.format("{http3: {size: 1kB, count: 3}}"), Path("x.scenario.yaml"))
    with pytest.raises(DescriptionError, match='is of steps with "requests:"'):
        scenario.parse(text.format("1MB"), Path("x.scenario.yaml"))


@pytest.mark.parametrize(
    ("law", "mean"),
    [
        ({"law": "constant", "value": 5}, 5),
        ({"law": "uniform", "low": 100, "high": 700}, 400),
        ({"law": "exponential", "mean": 250}, 250),
        ({"law": "exponential", "mean": 100, "most": 100}, 100 * (1 - math.exp(-1))),
        ({"law": "pareto", "mean": 120, "shape": 6}, 120),
        ({"law": "weibull", "mean": 100, "shape": 2}, 100),
        ({"law": "gamma", "mean": 300, "shape": 2.5}, 300),
        ({"law": "normal", "mean": 1000, "deviation": 100}, 1000),
    ],
)
def test_laws_of_aioquics_program_have_their_means(law: dict[str, Any], mean: float) -> None:
    draw = writes.law(law, random.Random(1))
    values = [draw() for _ in range(20_000)]
    found, deviation = statistics.fmean(values), statistics.pstdev(values)
    assert abs(found - mean) <= 4 * deviation / math.sqrt(len(values)) + 1e-9


def test_intervals_of_aioquics_program_run_on_in_on_periods_alone() -> None:
    """As those of our own generator, emulator/traffic/src/flows/schedule.rs."""
    constant = {name: {"law": "constant", "value": value} for name, value in (("a", 100), ("b", 250), ("c", 1000))}
    laws = {"size_bytes": constant["a"], "interval_ns": constant["a"], "on_ns": constant["b"], "off_ns": constant["c"]}
    due = list(itertools.islice(writes.schedule(laws, 1, 1000), 6))
    assert due == [(1000 + at, 100) for at in (0, 100, 200, 1300, 1400, 2500)]


def test_a_sweep_goes_over_libraries() -> None:
    schedule = scheduled("quic: {library: aioquic, congestion: reno, volume: 1MB}")
    assert schedule.document.flows[0].generator == "aioquic"
    assert schedule.program.commands[1].argv[0].endswith("/ewan-aioquic")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("quic: {library: picoquic, volume: 1MB}", 'write "quinn"'),
        (
            "quic: {congestion: vegas, volume: 1MB}",
            "quinn has no such congestion control: write cubic or bbr or newreno",
        ),
        (
            "quic: {library: aioquic, congestion: bbr, volume: 1MB}",
            "aioquic has no such congestion control: write cubic or reno",
        ),
        ("quic: 1MB, congestion: cubic", 'congestion "cubic": is not for QUIC: write "quic: {congestion: …}"'),
        ("quic: 1MB, generator: iperf3", 'generator "iperf3": is not for QUIC: write "quic: {library: …}"'),
        ("quic: 1MB, mss: 1000", "a step of kind quic has none: leave it out"),
        ("quic: 1MB, dscp: 46", "a step of kind quic has none: leave it out"),
        ("quic: {rate: 1Mbit/s, interval: 1s, volume: 1MB}", 'write one of "rate:" and "interval:"'),
        ("quic: {interval: 1s, volume: 1MB}", "chunk: is missing: write what is written at once"),
        ("quic: {rate: 1Mbit/s, on: 1s, volume: 1MB}", 'write both "on:" and "off:", or neither'),
        ("streams: 2, quic: {rate: 1Mbit/s, volume: 1MB}", "is written by one application: leave out streams"),
        ("quic: {rate: 1MB, volume: 1MB}", 'write a rate as "1Mbit/s"'),
        ("quic: {speed: 1Mbit/s, volume: 1MB}", "unknown key"),
        (
            "quic: {library: s2n-quic, http3: {count: 3, size: 1kB}}",
            'has none here: leave it out, or write "library: quinn"',
        ),
        (
            "quic: {library: s2n-quic, volume: 1MB, qlog: true}",
            'has none here: leave it out, or write "library: quinn"',
        ),
        ("quic: {library: s2n-quic, congestion: newreno, volume: 1MB}", "control: write cubic or bbr"),
        (
            "quic: {library: quic-go, congestion: cubic, volume: 1MB}",
            "quic-go has no such congestion control: write reno",
        ),
        ("quic: {http3: {count: 3}}", "size"),
        ("quic: {http3: {size: 1kB}}", 'never ends: write a "count:", or how long'),
        ("quic: {http3: {size: 0B, count: 3}}", 'size "0B": is 0: write more'),
        ("quic: {http3: {size: 1kB, count: 0}}", "count"),
        ("quic: {http3: {size: 1kB, count: 3, parallel: 101}}", "parallel"),
        ("quic: {http3: {size: 1s, count: 3}}", "size"),
        ("quic: {volume: 1MB, http3: {size: 1kB, count: 3}}", "is not for HTTP/3, whose objects have a size"),
        ("quic: {rate: 1Mbit/s, http3: {size: 1kB, count: 3}}", "is not for HTTP/3, whose objects have a size"),
        ("streams: 2, quic: {http3: {size: 1kB, count: 3}}", 'leave it out, or write "parallel:" in http3'),
        ("quic: ", "never ends"),
        ("quic: 1B, streams: 2", "is less than a byte for each of 2 streams"),
    ],
)
def test_what_is_not_for_quic_is_refused(words: str, message: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        scheduled(words)
    assert message in str(refused.value)


def test_the_lost_program_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "/nowhere/ewan-quic"
    tool = dataclasses.replace(quinn.TOOL, programs={missing: "quinn"})
    monkeypatch.setattr(external, "TOOLS", {"quinn": tool})
    (first, *_) = jobs(TEXT.replace("congestion: reno,", "").replace("bulk:", "quic:"))
    with pytest.raises(LabError, match=r'^/nowhere/ewan-quic, .* is not on this machine: write "make quic"'):
        reservation.tools(reservation.needs([first], virtual=True))


STREAM: dict[str, Any] = {
    "stream": 0,
    "started_ns": 100 * NS_PER_MS,
    "connected_ns": 140 * NS_PER_MS,
    "ended_ns": 400 * NS_PER_MS,
    "last_ns": 395 * NS_PER_MS,
    "bytes": 5000,
    "error": None,
    "udp_sent": {"datagrams": 10, "bytes": 9000},
    "udp_received": {"datagrams": 7, "bytes": 700},
    "sent_packets": 10,
    "lost_packets": 3,
    "congestion_events": 1,
    "min_rtt_ns": 40 * NS_PER_MS,
    "payload_bytes": 1000,
}
SAMPLE = {
    "time_ns": 300 * NS_PER_MS,
    "cwnd_bytes": 12_500,
    "ssthresh_bytes": None,
    "in_flight_bytes": None,
    "pacing_bps": None,
    "srtt_ns": 41 * NS_PER_MS,
    "rttvar_ns": None,
    "mtu_bytes": 1000,
    "sent_packets": 9,
    "lost_packets": 2,
    "congestion_events": 1,
}


def recorded(directory: Path, volume: int | None = 5000, sent: Any = (), got: Any = (), log: bool = False) -> Rows:
    """Rows of the two records, with these keys of their streams."""
    ends = {
        "send": STREAM | {"samples": [SAMPLE]} | dict(sent),
        "receive": STREAM
        | {"udp_received": {"datagrams": 8, "bytes": 7500}, "last_ns": 380 * NS_PER_MS}
        | {
            "bins": [
                {"number": 1, "arrived": 2000, "delivered": 1000},
                {"number": 3, "arrived": 3000, "delivered": 4000},
            ]
        }
        | dict(got),
    }
    for end, stream in ends.items():
        record = {"format": "ewan-quic/1", "end": end, "library": "quinn", "begun_ns": 5, "streams": [stream]}
        (directory / end).write_text(json.dumps(record))
    flow = codec.replace(schedules.FLOW, tool=QuicTool(0, 0, "cubic", log))
    row: Row = {"flow": 0, "part": 0, "scheduled_ns": 100 * NS_PER_MS, "volume_bytes": volume, "congestion": None}
    stdout, server = (directory / "send").read_bytes(), directory / "receive"
    return quinn.TOOL.rows(Output(flow, row, stdout, "", directory, 0, BIN_NS, server, directory))


def test_a_complete_volume_tells_its_time_and_its_losses(tmp_path: Path) -> None:
    (flow,) = recorded(tmp_path)["flows"]
    assert flow["error"] is None and flow["congestion"] == "cubic" and flow["completion_ns"] == 280 * NS_PER_MS
    assert (flow["sent_packets"], flow["received_packets"], flow["lost_packets"]) == (10, 8, 2)
    assert flow["retransmitted_segments"] == 3 and flow["copied_segments"] is None


def test_goodput_has_a_row_for_each_bin_of_the_connection(tmp_path: Path) -> None:
    goodput = recorded(tmp_path)["goodput"]
    assert [each["time_ns"] for each in goodput] == [200 * NS_PER_MS, 300 * NS_PER_MS, 400 * NS_PER_MS]
    assert [each["bin_ns"] for each in goodput] == [60 * NS_PER_MS, BIN_NS, BIN_NS]
    assert [(each["arrived_bytes"], each["delivered_bytes"]) for each in goodput] == [
        (2000, 1000),
        (0, 0),
        (3000, 4000),
    ]


def test_an_incomplete_volume_has_no_completion_time(tmp_path: Path) -> None:
    (flow,) = recorded(tmp_path, sent={"error": "sending: connection lost: timed out"}, got={"bytes": 4000})["flows"]
    assert flow["error"] == "quinn: sending: connection lost: timed out"
    assert flow["completion_ns"] is None and flow["lost_packets"] is None and flow["received_bytes"] == 4000


def test_objects_are_rows_of_exchanges_and_their_client_is_the_receiver(tmp_path: Path) -> None:
    objects = [{"number": 0, "start_ns": 150, "duration_ns": 70, "bytes": 5000}]
    client = STREAM | {"started_ns": 110 * NS_PER_MS, "volume": 5000, "last_ns": 380 * NS_PER_MS, "objects": objects}
    client |= {"bins": [{"number": 3, "arrived": None, "delivered": 5000}]}
    for end, stream in (("send", STREAM | {"samples": [SAMPLE]}), ("receive", client)):
        record = {"format": "ewan-quic/1", "end": end, "library": "quinn", "begun_ns": 5, "streams": [stream]}
        (tmp_path / end).write_text(json.dumps(record))
    flow = codec.replace(schedules.FLOW, tool=QuicTool(0, 0, "cubic", False, True))
    row: Row = {"flow": 0, "part": 0, "scheduled_ns": 100 * NS_PER_MS, "volume_bytes": None, "congestion": None}
    stdout = (tmp_path / "receive").read_bytes()
    rows = quinn.TOOL.rows(Output(flow, row, stdout, "", tmp_path, 0, BIN_NS, tmp_path / "send", tmp_path))
    (found,) = rows["flows"]
    assert (found["volume_bytes"], found["received_bytes"], found["completion_ns"]) == (5000, 5000, 280 * NS_PER_MS)
    assert found["started_ns"] == 110 * NS_PER_MS and len(rows["series"]) == 1
    (exchange,) = rows["exchanges"]
    assert exchange == {"flow": 0, "part": 0, "number": 0, "start_ns": 150, "duration_ns": 70} | {
        "sent_bytes": 0,
        "received_bytes": 5000,
    }
    assert {bin_["arrived_bytes"] for bin_ in rows["goodput"]} == {None}


def event(time_ms: float, name: str, kind: str = "", size: int | None = None, **data: Any) -> dict[str, Any]:
    """An event, of a packet with the number 0 where it has a kind."""
    header = {"header": {"packet_type": kind, "packet_number": 0, "length": size}} if kind else {}
    return {"time": time_ms, "name": name, "data": header | data}


SENDER = [
    {"qlog_version": "0.3", "qlog_format": "JSON-SEQ"},
    event(1.0, "transport:packet_sent", "initial", 1200),
    event(2.0, "transport:packet_sent", "1RTT", 900),
    event(2.5, "recovery:metrics_updated", bytes_in_flight=3000, rtt_variance=0.002),
    event(9.0, "recovery:metrics_updated", congestion_window=12000),
    event(9.5, "recovery:packet_lost", "1RTT"),
    event(9.6, "recovery:packet_lost", "initial"),
]
RECEIVER = [{"qlog_version": "0.3"}, event(1.0, "transport:packet_received", "1RTT")]


def write_qlogs(directory: Path) -> None:
    for name, events in (("send-0", SENDER), ("receive-0", RECEIVER)):
        (directory / f"{name}.sqlog").write_text("".join(f"\x1e{json.dumps(event)}\n" for event in events))


def test_a_sequence_tells_what_was_in_flight_and_what_was_lost_for_nothing(tmp_path: Path) -> None:
    write_qlogs(tmp_path)
    sender, receiver = qlog.read(tmp_path, "send-0"), qlog.read(tmp_path, "receive-0")
    assert sender.sent_bytes == 2100 and len(sender.lost) == 2
    # Numbers of packets are counted anew in each space.
    assert qlog.spurious(sender, receiver) == [("application", 0)]
    assert sender.states(5)[-1] == qlog.SenderState(9 * NS_PER_MS + 5, 3000, 2 * NS_PER_MS)
    rows = recorded(tmp_path, log=True)
    assert rows["flows"][0]["copied_segments"] == 1
    (series,) = rows["series"]
    assert (series["cwnd_segments"], series["in_flight_segments"], series["rttvar_ns"]) == (12, 3, 2 * NS_PER_MS)


def test_a_whole_file_has_milliseconds(tmp_path: Path) -> None:
    lost = event(3.0, "recovery:packet_lost", type="1RTT", packet_number=7)
    text = json.dumps({"traces": [{"events": [*SENDER[3:4], lost]}]})
    (tmp_path / "send-0.qlog").write_text(text)
    read = qlog.read(tmp_path, "send-0")
    assert read.lost == (("application", 7),) and read.states(0)[0].rttvar_ns == 2_000


@pytest.mark.parametrize("text", ["", "{}", '{"traces": []}', '{"traces": [{"events": [{"name": "x"}]}]}'])
def test_another_file_is_no_qlog(text: str, tmp_path: Path) -> None:
    (tmp_path / "send-0.qlog").write_text(text)
    with pytest.raises(ValueError, match=r"send-0\.qlog: is no qlog"):
        qlog.read(tmp_path, "send-0")


@pytest.mark.parametrize(
    ("end", "text", "error"),
    [
        ("send", "", "quinn: its output is not whole"),
        ("receive", "", "quinn: its receiver left no record"),
        ("receive", '{"format": "ewan-quic/1", "end": "receive", "library": "quinn", "begun_ns": 0, "streams": []}',
         "quinn: nothing came to its receiver"),
    ],
)  # fmt: skip
def test_what_was_not_said_is_an_error(end: str, text: str, error: str, tmp_path: Path) -> None:
    recorded(tmp_path)
    (tmp_path / end).write_text(text)
    flow = codec.replace(schedules.FLOW, tool=QuicTool(0, 0, "cubic", False))
    row: Row = {"flow": 0, "part": 0, "scheduled_ns": 0, "volume_bytes": 5000, "congestion": None}
    output = Output(
        flow, row, (tmp_path / "send").read_bytes(), "", tmp_path, 0, BIN_NS, tmp_path / "receive", tmp_path
    )
    rows = quinn.TOOL.rows(output)
    assert rows["flows"][0]["error"] == error and "goodput" not in rows
