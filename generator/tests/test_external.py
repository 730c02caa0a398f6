"""iperf3 and D-ITG: their commands, and the rows of their outputs; `tools/` holds captured ones.

The capture is of tools/tools.scenario.yaml in the virtual clock: commands.json, and commands/ of the clients."""

from __future__ import annotations

import dataclasses
import pkgutil
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import orjson
import polars as pl
import pytest

from ewan.generator import external, scenario
from ewan.generator.external import ditg
from ewan.generator.external.transfer import Output
from ewan.generator.rows import Rows
from ewan.generator.scenario import ScheduledRun
from ewan.generator.scenario.fields import GENERATOR, ScenarioStep
from ewan.generator.scenario.flows import FOREIGN
from ewan.generator.scenario.kinds import KINDS, Library
from ewan.generator.tests import schedules
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record.tables import TABLES

TOOLS = Path(__file__).resolve().parent / "tools"
FACTS = HostFacts((0, 1), (), "virtual")
QUEUE_PACKETS = 20
LINK_BPS = 10_000_000


@pytest.fixture(scope="module")
def schedule() -> ScheduledRun:
    (run,) = scenario.load(TOOLS / "tools.scenario.yaml").runs()
    return run.schedule(compile_spec(run.spec, FACTS), "virtual")


@pytest.fixture(scope="module")
def rows(schedule: ScheduledRun) -> dict[str, pl.DataFrame]:
    return external.rows(schedule.document, TOOLS)


def flow(rows: dict[str, pl.DataFrame], step: str, part: int = 0) -> dict[str, Any]:
    return rows["flows"].filter(pl.col("step") == step, pl.col("part") == part).row(0, named=True)


def test_the_commands_are_those_of_the_capture(schedule: ScheduledRun) -> None:
    ran = orjson.loads((TOOLS / "commands.json").read_bytes())["commands"]
    assert [(each["node"], tuple(each["argv"]), each["at_ns"], each["service"]) for each in ran] == [
        (command.node, command.argv, command.at_ns, command.service) for command in schedule.program.commands
    ]


def test_rows_have_the_columns_of_their_tables(rows: dict[str, pl.DataFrame]) -> None:
    for table, frame in rows.items():
        assert frame.schema == pl.Schema(TABLES[table])
    assert rows["flows"]["flow"].to_list() == [0, 1, 2, 3, 3, 4, 5, 6, 7]
    assert set(rows["flows"]["generator"]) == {"iperf3", "ditg"}


def test_two_streams_of_iperf3_share_the_link(rows: dict[str, pl.DataFrame]) -> None:
    both = rows["flows"].filter(pl.col("step") == "streams").to_dicts()
    assert sum(row["goodput_bps"] for row in both) == pytest.approx(LINK_BPS * 1448 / 1538, rel=0.05)
    assert both[0]["transfer"] == both[1]["transfer"]
    for row in both:
        assert row["completion_ns"] is None
        assert row["min_rtt_ns"] >= 20_000_000
        bins = rows["goodput"].filter(pl.col("flow") == row["flow"])
        assert bins["delivered_bytes"].sum() == row["received_bytes"]
    series = rows["series"].filter(pl.col("flow") == 0).to_dicts()
    assert [row["time_ns"] for row in series] == pytest.approx(
        [(200 * n + 100) * NS_PER_MS for n in range(1, 6)], abs=2 * NS_PER_MS
    )
    assert series[-1]["retransmitted_segments"] == both[0]["retransmitted_segments"]
    assert all(2 <= row["cwnd_segments"] < 200 for row in series)


def test_both_ways_are_two_parts_with_their_ends_exchanged(rows: dict[str, pl.DataFrame]) -> None:
    ahead, back = flow(rows, "both"), flow(rows, "both", 1)
    assert (ahead["source"], back["source"]) == ("left1", "right1")
    assert (ahead["kind"], ahead["volume_bytes"]) == ("bulk", 500_000)
    for number, part in ((3, 0), (3, 1)):
        row = flow(rows, "both", part)
        bins = rows["goodput"].filter(pl.col("flow") == number, pl.col("part") == part)
        assert bins["delivered_bytes"].sum() == pytest.approx(row["received_bytes"], rel=0.1)
        assert rows["series"].filter(pl.col("flow") == number, pl.col("part") == part).height > 1


def test_udp_through_a_full_link_loses_what_does_not_fit(rows: dict[str, pl.DataFrame]) -> None:
    """12 Mbit/s of payload for 1 s, packets of 1000 B and 66 B of headers and framing, through 10 Mbit/s."""
    row = flow(rows, "flood")
    through = LINK_BPS / 8 / 1066 + QUEUE_PACKETS
    assert row["sent_packets"] == pytest.approx(1500, abs=2)
    assert row["received_packets"] == pytest.approx(through, abs=3)
    assert row["lost_packets"] == row["sent_packets"] - row["received_packets"]
    assert row["received_bytes"] == 1000 * row["received_packets"]
    assert row["jitter_ns"] > 0
    assert row["delay_p50_ns"] is None


def test_what_a_tool_refuses_is_the_error_of_its_flow(rows: dict[str, pl.DataFrame]) -> None:
    row = flow(rows, "refused")
    assert row["error"].startswith("iperf3: unable to set TCP_CONGESTION")
    assert row["received_bytes"] is None
    assert flow(rows, "flood")["error"] is None


def test_a_poisson_stream_of_ditg_has_its_rate_sizes_and_delays(rows: dict[str, pl.DataFrame]) -> None:
    """200 packets/s of 100 to 900 B over a one-way delay of 10 ms."""
    row = flow(rows, "poisson")
    assert row["sent_packets"] == pytest.approx(200, abs=5 * 200**0.5)
    assert row["received_bytes"] / row["received_packets"] == pytest.approx(500, abs=60)
    assert (row["lost_packets"], row["reordered_packets"], row["duplicate_packets"]) == (0, 0, 0)
    assert 10_000_000 <= row["delay_min_ns"] <= row["delay_p50_ns"] <= row["delay_p99_ns"] <= row["delay_max_ns"]
    assert row["delay_p99_ns"] < 13_000_000
    assert row["started_ns"] - row["scheduled_ns"] == pytest.approx(85_000_000, abs=10_000_000)
    assert rows["goodput"].filter(pl.col("flow") == row["flow"])["delivered_bytes"].sum() == row["received_bytes"]


def test_ditg_through_a_full_link_waits_in_the_queue_and_loses(rows: dict[str, pl.DataFrame]) -> None:
    row = flow(rows, "overload")
    assert row["sent_packets"] == pytest.approx(450, abs=2)
    assert row["received_packets"] == pytest.approx(0.3 * LINK_BPS / 8 / 1066 + QUEUE_PACKETS, abs=4)
    queueing = QUEUE_PACKETS * 1066 * 8 / LINK_BPS * 1000
    assert (row["delay_max_ns"] - row["delay_min_ns"]) / 1000**2 == pytest.approx(queueing, abs=2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"flows": [{"sedn_packets": 1}]}, "iperf3: table flows: sedn_packets: no column"),
        ({"goodput": [{"flow": 0}, {"flow": 0, "bytes": 1}]}, "iperf3: table goodput: bytes: no column"),
        ({"exchange": []}, "iperf3: rows of a table 'exchange'"),
    ],
)
def test_a_row_that_no_table_has_room_for_names_the_tool_and_the_key(
    schedule: ScheduledRun, monkeypatch: pytest.MonkeyPatch, given: Rows, words: str
) -> None:
    """No part of a tool's rows is dropped unseen."""
    wrong = dataclasses.replace(external.TOOLS["iperf3"], rows=lambda output: given)
    monkeypatch.setattr(external, "TOOLS", {**external.TOOLS, "iperf3": wrong})
    with pytest.raises(ValueError, match=re.escape(words)):
        external.rows(schedule.document, TOOLS)


def test_what_did_not_run_says_so(schedule: ScheduledRun, tmp_path: Path) -> None:
    rows = external.rows(schedule.document, tmp_path)
    assert set(rows["flows"]["error"]) == {"iperf3: did not run", "ditg: did not run"}
    assert rows["series"].is_empty()


def test_an_output_that_is_not_whole_says_so(schedule: ScheduledRun, tmp_path: Path) -> None:
    (tmp_path / "commands.json").write_bytes((TOOLS / "commands.json").read_bytes())
    for file in (TOOLS / "commands").rglob("*.*"):
        copy, content = tmp_path / file.relative_to(TOOLS), file.read_bytes()
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(b"" if file.suffix == ".log" else content[: len(content) // 2])
    errors = external.rows(schedule.document, tmp_path)["flows"]["error"]
    assert errors.is_not_null().all()
    assert "iperf3: its output is not whole" in set(errors)


def test_what_iperf3_does_not_tell_of_its_segments_is_null(schedule: ScheduledRun, tmp_path: Path) -> None:
    shutil.copytree(TOOLS, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / "commands").glob("*.*"):
        if b'"tcp_mss' in path.read_bytes():
            path.write_bytes(re.sub(rb'"tcp_mss(_default)?":\s*\d+,', b"", path.read_bytes()))
    found = external.rows(schedule.document, tmp_path)
    row = flow(found, "both")
    assert row["received_bytes"] > 0 and row["segment_bytes"] is None
    series = found["series"].filter(pl.col("flow") == row["flow"])
    assert series.height > 1 and series["cwnd_segments"].is_null().all()
    assert series["srtt_ns"].min() > 0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("server", "treatment", "told"),
    [
        # 2250 sent: 45 lost, 1008 late.
        ((2204, 2249, 1008), {}, (2204, 45, 1008, None)),
        ((2204, 2249, 1008), {"overtaken": True}, (2204, 45, 1008, None)),
        # 223 lost, 1030 copies: iperf3 says that none was lost.
        ((3057, 2250, 1030), {"copied": True}, (2027, 223, 0, 1030)),
        ((3057, 2250, 1030), {"copied": True, "overtaken": True}, (None, None, None, None)),
        ((3057, 2250, 1030), {}, (None, None, None, None)),  # copied by what is no link
        ((2027, 2250, 0), {"copied": True, "overtaken": True}, (2027, 223, 0, None)),
    ],
)
def test_datagrams_of_iperf3_are_those_that_its_server_counts(
    server: tuple[int, int, int], treatment: dict[str, bool], told: tuple[int | None, ...]
) -> None:
    came, highest, unordered = server
    reported = max(0, highest - came)
    udp = {"end": 6, "jitter_ms": 0.1, "lost_packets": reported}
    entry = {"end": 6, "seconds": 6, "bytes": came * 1000, "sender": False}
    report = {
        "start": {"test_start": {"blksize": 1000}},
        "end": {
            "streams": [{"udp": udp | {"packets": 2250, "out_of_order": 0, "sender": True}}],
            "sum_received": {"end": 6.5, "bytes": came * 1000, "packets": highest, "sender": False},
        },
        "server_output_json": {
            "end": {"streams": [{"udp": udp | {"packets": highest, "out_of_order": unordered, "sender": False}}]},
            "intervals": [{"streams": [entry]}, {"streams": [entry | {"end": 6.5, "seconds": 0.5, "bytes": 0}]}],
        },
    }
    output = Output(schedules.FLOW, {"flow": 0}, orjson.dumps(report), "", Path(), 0, 10**8)
    found = external.TOOLS["iperf3"].rows(dataclasses.replace(output, **treatment))  # type: ignore[arg-type]
    (row,) = found["flows"]
    names = ("received_packets", "lost_packets", "reordered_packets", "duplicate_packets")
    assert tuple(row[name] for name in names) == told
    size = None if told[0] is None else told[0] * 1000
    assert row["received_bytes"] == size and row["sent_packets"] == 2250
    assert row["ended_ns"] == 6 * 10**9, "the word that ends the test came later"
    assert [each["arrived_bytes"] for each in found.get("goodput", [])] == ([] if size is None else [size, 0])


def test_copies_of_ditg_s_packets_are_no_payload() -> None:
    def line(number: int, sent_us: int, got_us: int) -> str:
        return f"Flow>1 Seq>{number} txTime>0:0:1.{sent_us:06} rxTime>0:0:1.{got_us:06} Size>1000\n"

    # The first one twice, the third lost, the second behind the fourth.
    log = line(1, 0, 10) + line(1, 0, 12) + line(4, 30, 40) + line(2, 10, 50) + line(4, 30, 60)
    found: Any = ditg._rows({"flow": 0, "kind": "udp"}, "1.000000000\n", log, 0, 10**6)
    (row,) = found["flows"]
    assert (row["received_bytes"], row["received_packets"], row["lost_packets"]) == (3000, 3, 1)
    assert (row["duplicate_packets"], row["reordered_packets"], row["delay_max_ns"]) == (2, 1, 40_000)
    assert sum(each["arrived_bytes"] for each in found["goodput"]) == 3000


def test_the_words_of_a_scenario_are_those_of_the_tools() -> None:
    """A tool that is not registered would be a word that no run understands."""
    modules = {each.name.replace("_", "-") for each in pkgutil.iter_modules(external.__path__)} - {
        "transfer",
        "quic",
        "qlog",
    }
    assert modules == set(external.TOOLS)
    assert {*get_args(GENERATOR), *get_args(Library)} == {"ewan", *external.TOOLS}
    page = (Path(__file__).resolve().parents[2] / "docs/reference/scenario.md").read_text()
    assert all(f"- `generator: {name}` does " in page for name in {*external.TOOLS} - {*get_args(Library)})
    assert all(f"- `library: {name}` does " in page for name in get_args(Library))


def test_every_kind_of_step_is_of_a_tool_or_refused_by_it() -> None:
    """A new kind belongs to no tool until a tool names it."""
    assert set(FOREIGN) == set(KINDS)
    does = {
        "quinn": {"quic"},
        "aioquic": {"quic"},
        "s2n-quic": {"quic"},
        "quic-go": {"quic"},
        "iperf3": {"bulk", "bidirectional", "udp"},
        "ditg": {"bulk", "udp"},
        "udt": {"bulk"},
        "openmpi": {"messages"},
    }
    for name, tool in external.TOOLS.items():
        for kind in KINDS:
            step = SimpleNamespace(kind=kind, work=SimpleNamespace(), for_=None)
            settings: Any = SimpleNamespace(socket={})
            if kind not in does[name]:
                assert tool.obstacle(cast(ScenarioStep, step), settings) is not None, (
                    f"{name} takes {kind} for something else"
                )


def test_the_programs_that_must_be_there_are_those_of_the_tools(schedule: ScheduledRun) -> None:
    assert external.programs(schedule.document) == ("iperf3", "ITGSend", "ITGRecv", "ITGDec")
    assert external.programs(schedules.schedule([schedules.FLOW])) == ()


def ditg_of(words: str) -> tuple[str, ...]:
    """The command of a step's sender."""
    text = f"lab: dumbbell\nsteps: [{{generator: ditg, name: a, from: left1, to: right1, {words}}}]\n"
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    return run.schedule(compile_spec(run.spec, FACTS), "virtual").program.commands[1].argv


def test_ditg_sends_tcp_with_the_congestion_control_of_its_node() -> None:
    script = ditg_of("congestion: bic, nodelay: true, for: 2s, bulk: ")[2]
    assert script.startswith("{ echo bic >/proc/sys/net/ipv4/tcp_congestion_control; }")
    assert " -T TCP -C 500000 -c 8000 -D -t 2000 " in script


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("bulk: 1MB", 'ditg does not read what is on its way when all is sent: write "for: 10s"'),
        ("for: 1s, streams: 2, bulk: ", "ditg makes one connection"),
        ("for: 1s, window: 64kB, bulk: ", "ditg sets none"),
    ],
)
def test_what_ditg_does_not_do_over_tcp_is_refused(words: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=re.escape(message)):
        ditg_of(words)


def test_a_node_has_one_congestion_control_for_all_that_ditg_sends() -> None:
    step = "generator: ditg, from: left1, to: right1, for: 1s, bulk: "
    text = f"lab: dumbbell\nsteps: [{{name: a, congestion: bic, {step}}}, {{name: b, congestion: reno, {step}}}]\n"
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    with pytest.raises(DescriptionError, match="sets it for all of left1, where another step has bic"):
        run.schedule(compile_spec(run.spec, FACTS), "virtual")


@pytest.mark.parametrize(
    ("udp", "words"),
    [
        ("{size: 500B, rate: 1Mbit/s}", "-C 250 -c 500"),
        ("{size: 500B, interval: {uniform: {low: 5ms, high: 20ms}}}", "-U 50 200 -c 500"),
        ("{size: {exponential: {mean: 500B}}, interval: {normal: {mean: 10ms, deviation: 1ms}}}", "-N 10 1 -e 500"),
        ("{size: {pareto: {mean: 600B, shape: 3}}, interval: {pareto: {mean: 6ms, shape: 3}}}", "-V 3 4 -v 3 400"),
        ("{size: {gamma: {mean: 600B, shape: 2}}, interval: {gamma: {mean: 5ms, shape: 2}}}", "-G 2 2.5 -g 2 300"),
        ("{size: 1kB, rate: 8Mbit/s, on: 100ms, off: {exponential: {mean: 50ms}}}", "-C 1000 -c 1000 -B C 100 E 50"),
    ],
)
def test_laws_in_the_words_of_ditg(udp: str, words: str) -> None:
    text = f"lab: dumbbell\nsteps: [{{name: a, generator: ditg, from: left1, to: right1, for: 2s, udp: {udp}}}]\n"
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    _, client = run.schedule(compile_spec(run.spec, FACTS), "virtual").program.commands
    assert f" -T UDP {words} -t 2000 " in client.argv[2]
