"""The part of each machine in a run, and the joint results of all machines."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.extras.machines import flow_records, joint_results, programs
from ewan.extras.machines.joint_probes import Offset
from ewan.extras.machines.joint_results import Clocks, LostMachine, MachineResults
from ewan.extras.machines.placement import place
from ewan.extras.machines.programs import PART, NodePlaces
from ewan.extras.machines.shares import stretched
from ewan.generator.traffic_request import FlowRecord, TrafficResult
from ewan.labs import spec
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import Change
from ewan.labs.record.commands import CommandEntry, CommandsDocument
from ewan.labs.record.events import carrier_change, link_change
from ewan.labs.record.traffic import (
    ArrivalsWork,
    BulkWork,
    ConstantLaw,
    Endpoint,
    FlowRequest,
    Half,
    MessagesWork,
    RequestsWork,
    SocketOptions,
    StateComparison,
    StateCondition,
    TrafficRequest,
    UdpWork,
    Work,
)
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, Program

SECOND = NS_PER_SECOND


@pytest.fixture(scope="module")
def where() -> NodePlaces:
    """A dumbbell of two pairs: left on one machine, right on the other, the emulator left."""
    plan = compile(spec.from_template("dumbbell", {"pairs": "2"}), HostFacts(cpus=(0, 1), networks=()))
    placed = place(plan, {"one": 2, "two": 2}, {"left[1-2],r1,core": "one", "right[1-2],r2": "two"})
    return NodePlaces(plan, placed.machine_of, stretched(plan, placed), {"one": (1,), "two": (0, 1)})


def end(node: str) -> Endpoint:
    return Endpoint(f"/run/netns/ewan-dumbbell-{node}", "10.0.0.1")


ONE = ConstantLaw(1)
WORKS: dict[str, Work] = {
    "bulk": BulkWork(),
    "udp": UdpWork(None, ONE, ONE),
    "arrivals": ArrivalsWork(None, ONE, ONE),
    "requests": RequestsWork(None, ONE, ONE, ONE),
}


def flow(source: str, sink: str, kind: str = "bulk", **more: Any) -> FlowRequest:
    name, socket = f"{source} to {sink}", SocketOptions()
    return FlowRequest(name=name, from_=end(source), to=end(sink), work=WORKS[kind], socket=socket, **more)


def traffic(*flows: FlowRequest) -> TrafficRequest:
    return TrafficRequest(clock="live", cpus=(), seed=7, longest_ns=SECOND, flows=flows)


def test_flows_and_commands_keep_the_numbers_of_the_whole_and_crossing_flows_become_halves(where: NodePlaces) -> None:
    flows = (flow("left1", "right1"), flow("left1", "left2"), flow("right2", "left2", "udp"), flow("left2", "right1"))
    commands = (Command("right1", ("iperf3", "-s"), service=True), Command("left1", ("iperf3", "-c", "right1")))
    program = Program(commands=commands, traffic=traffic(*flows), longest_ns=SECOND)
    split = programs.split(program, where, 99, {"two": 5_000})
    one, two = split.parts["one"], split.parts["two"]
    assert (one.commands, two.commands) == ((1,), (0,))
    assert [each.number for each in one.program.commands] == [1]
    asked = {name: part.program.traffic for name, part in split.parts.items()}
    of = {name: {each.number: each for each in told.flows} for name, told in asked.items() if told}
    assert of["one"].keys() == {0, 1, 2, 3} and of["two"].keys() == {0, 2, 3}
    assert of["one"][1].half is None
    assert of["one"][0].half == Half("source", 61000, 99, 5_000)
    assert of["two"][0].half == Half("sink", 61000, 99, 5_000)
    assert of["one"][2].half == Half("sink", 61000, 99, -5_000)
    assert of["two"][3].half == Half("sink", 61001, 99, 5_000), "another flow to the same sink"
    assert asked["one"] is not None and (asked["one"].cpus, asked["one"].seed) == ((1,), 7)
    assert (one.halves, two.halves) == (
        {0: "source", 2: "sink", 3: "source"},
        {0: "sink", 2: "source", 3: "sink"},
    )


def test_a_program_of_nothing_that_crosses_has_no_new_keys_but_numbers(where: NodePlaces) -> None:
    program = Program(traffic=traffic(flow("left1", "left2", step=0, after=())), longest_ns=SECOND, watch_ns=5)
    split = programs.split(program, where, 1, {})
    assert split.steps == {} and split.parts["two"].program.traffic is None
    document = orjson.loads(split.parts["one"].program.to_json())
    assert document.keys() == {"format", "longest_ns", "traffic", "watch_ns"}
    assert document["traffic"]["flows"][0]["step"] == 0


def test_a_step_of_which_several_machines_know_has_a_part_on_each(where: NodePlaces) -> None:
    program = Program(
        commands=(Command("left1", ("true",), step=1), Command("right1", ("true",), step=2, after=(0, 1))),
        traffic=traffic(flow("left1", "right1", step=0), flow("left1", "left2", step=3, after=(1,))),
        longest_ns=SECOND,
    )
    split = programs.split(program, where, 1, {})
    assert split.steps == {0: (("one", "two"), ("two",)), 1: (("one",), ("one", "two"))}
    one, two = split.parts["one"].program, split.parts["two"].program
    assert [each.step for each in one.commands] == [1 + PART] and two.commands[0].after == (0, 1)
    assert (one.elsewhere, two.elsewhere) == ((1,), (0, 1))
    assert one.traffic is not None and two.traffic is not None
    assert (one.traffic.told, one.traffic.elsewhere) == ((PART,), (1,))
    assert two.traffic.told == (PART,) and two.traffic.elsewhere == ()


def test_events_go_to_the_emulator_and_a_carrier_to_both_machines(where: NodePlaces) -> None:
    change = codec.from_data(Change, {"rate_bps": 1_000_000}, "change")
    events = (link_change(5, "core", "forward", change), carrier_change(9, "core", True))
    split = programs.split(Program(events=events, longest_ns=SECOND), where, 1, {})
    assert (split.parts["one"].events, split.parts["two"].events) == ((0, 1), (1,))


def test_what_cannot_be_between_machines_is_named(where: NodePlaces) -> None:
    work = MessagesWork("barrier", 1, ONE, ONE, (end("left1"), end("left2"), end("right1")))
    ranks = FlowRequest(name="solver", work=work, socket=SocketOptions())
    program = Program(traffic=traffic(ranks), longest_ns=SECOND)
    with pytest.raises(LabError, match="solver: its ends are on the machines one and two, and messages"):
        where.check(program)


def test_states_of_congestion_controls_are_of_one_machine(where: NodePlaces) -> None:
    asked = StateCondition(1, 0, 10**6, (StateComparison("mode", "=", "DRAIN"),))
    flows = codec.replace(traffic(flow("left1", "right1", step=0)), conditions=(asked,))
    with pytest.raises(LabError, match="when: states of congestion controls are looked at by one machine"):
        where.check(Program(traffic=flows))


def record(**more: Any) -> FlowRecord:
    none = dict.fromkeys(name for name in FlowRecord.__struct_fields__ if name not in ("name", "port", "series"))
    return codec.from_data(
        FlowRecord,
        none | {"flow": 0, "part": 0, "kind": "bulk", "scheduled_ns": 0, "received_bytes": 0} | more,
        "record",
    )


def test_a_record_has_what_each_end_knows() -> None:
    source = record(started_ns=1, connected_ns=2, ended_ns=90, segment_bytes=1448, received_bytes=99, error="reset")
    sink = record(started_ns=0, ended_ns=80, received_bytes=100, completion_ns=80)
    found = flow_records.whole(source, sink, "", 0)
    assert (found.started_ns, found.connected_ns, found.segment_bytes) == (1, 2, 1448)
    assert (found.ended_ns, found.received_bytes, found.error) == (80, 100, None), "all came"
    refused = flow_records.whole(record(error="connect: refused"), record(error="it had not ended"), "", 0)
    assert refused.error == "connect: refused"
    back = flow_records.whole(record(part=1, received_bytes=7), record(part=1, segment_bytes=9), "", 0)
    assert (back.received_bytes, back.segment_bytes) == (7, 9)
    assert flow_records.whole(source, None, "machine two was lost", 0).error == "machine two was lost"


def test_datagrams_are_counted_by_who_sent_them_and_delays_lose_what_the_clocks_drifted() -> None:
    delays = dict.fromkeys(("delay_min_ns", "delay_p50_ns"), 5_000)
    sent = record(kind="udp", ended_ns=SECOND, sent_packets=10, received_packets=0)
    got = record(kind="udp", ended_ns=SECOND // 2, sent_packets=12, received_packets=9, received_bytes=125, **delays)
    found = flow_records.whole(sent, got, "", 300)
    assert (found.sent_packets, found.lost_packets, found.delay_p50_ns) == (10, 1, 4_700)
    assert (found.ended_ns, found.goodput_bps) == (SECOND, 1000.0)


def test_arrivals_are_told_apart_by_the_sources_port_and_the_order_of_those_that_had_it_twice() -> None:
    def came(part: int, port: int | None, **more: Any) -> FlowRecord:
        return record(kind="arrivals", part=part, port=port, **more)

    sources = [
        came(0, 40, connected_ns=10, volume_bytes=100),
        came(1, 41, connected_ns=11, volume_bytes=50),
        came(2, None, volume_bytes=5, error="connect: refused"),
        came(3, 40, connected_ns=90, volume_bytes=70),
    ]
    sinks = [
        came(0, 41, ended_ns=60, received_bytes=50),
        came(1, 40, ended_ns=70, received_bytes=100),
        came(2, 40, ended_ns=99, received_bytes=30),
    ]
    rows, part_of = flow_records.arrivals(sources, sinks, "not seen")
    assert part_of == {0: 1, 1: 0, 2: 3}
    assert [row.received_bytes for row in rows] == [100, 50, 0, 30]
    assert [row.completion_ns for row in rows] == [70, 60, None, None]
    assert [row.error for row in rows] == [None, None, "connect: refused", None]
    rows, _ = flow_records.arrivals(sources[:1], [], "machine two was lost")
    assert rows[0].error == "machine two was lost"


def test_a_session_is_the_sources_and_counts_what_came_at_both_ends() -> None:
    source = record(kind="requests", ended_ns=SECOND, received_bytes=1000, retransmitted_segments=1, min_rtt_ns=9)
    sink = record(kind="requests", ended_ns=5, received_bytes=250, retransmitted_segments=2, error="x", segment_bytes=7)
    found = flow_records.whole(source, sink, "", 0)
    assert (found.received_bytes, found.goodput_bps, found.error) == (1250, 10_000.0, None)
    assert (found.retransmitted_segments, found.min_rtt_ns, found.segment_bytes) == (3, 9, 7)


def test_goodput_of_arrivals_has_their_parts_and_that_of_sessions_the_sum_of_both_ends(
    where: NodePlaces, tmp_path: Path
) -> None:
    flows = (flow("left1", "right1", "arrivals"), flow("left2", "right2", "requests"))
    program = Program(traffic=traffic(*flows), longest_ns=SECOND)
    split = programs.split(program, where, 1, {})
    heading = "flow,part,time_ns,bin_ns,delivered_bytes,arrived_bytes\n"
    session = {"flow": 1, "kind": "requests", "port": 9}
    told = {
        "one": [record(kind="arrivals", part=4, port=40, connected_ns=1, volume_bytes=9), record(**session)],
        "two": [record(kind="arrivals", part=0, port=40, ended_ns=7, received_bytes=9), record(**session)],
    }
    bins = {"one": "1,0,100,100,10,\n", "two": "0,0,100,100,9,9\n1,0,100,100,5,\n1,0,200,100,1,\n"}
    for name in told:
        (tmp_path / name / "traffic").mkdir(parents=True)
        (tmp_path / name / "traffic/traffic.json").write_bytes(codec.line(TrafficResult(False, tuple(told[name]))))
        (tmp_path / name / "traffic/goodput.csv").write_text(heading + bins[name])
    (tmp_path / "whole").mkdir()
    places = {name: tmp_path / name for name in told}
    joint_results.merge(program, split, where, {}, MachineResults(places, Clocks("one", {}, {})), tmp_path / "whole")
    said = (tmp_path / "whole/traffic/goodput.csv").read_text()
    assert said == heading + "0,4,100,100,9,9\n1,0,100,100,15,\n1,0,200,100,1,\n"
    rows = orjson.loads((tmp_path / "whole/traffic/traffic.json").read_bytes())["flows"]
    assert [(row["flow"], row["part"]) for row in rows] == [(0, 4), (1, 0)] and "port" not in rows[0]


def test_a_machine_that_was_lost_leaves_whole_seconds_that_count() -> None:
    words = "machine two was lost 7.3s after T0: seconds 0–6 count"
    assert LostMachine("two", 7_300_000_000).words == words
    assert LostMachine("two", 1_300_000_000).words.endswith("second 0 counts")
    assert LostMachine("two", 300_000_000).words.endswith("no second counts")


def test_clocks_are_as_uncertain_as_they_were_compared_and_drifted() -> None:
    clocks = Clocks("one", {"two": Offset(1_000, 50)}, {"two": Offset(1_400, 80)})
    assert (clocks.drift_ns("two"), clocks.uncertainty_ns("two"), clocks.drift_ns("one")) == (200, 280, 0)


def test_results_become_one_runs(where: NodePlaces, tmp_path: Path) -> None:
    commands = (Command("right1", ("true",)), Command("left1", ("true",)), Command("right2", ("true",)))
    program = Program(commands=commands, longest_ns=SECOND, watch_ns=1)
    split = programs.split(program, where, 1, {})
    one, two, whole = (tmp_path / name for name in ("one", "two", "whole"))
    for directory in (one, two, whole):
        (directory / "commands").mkdir(parents=True)
    name = "commands/2-left1"
    entry = CommandEntry(
        node="left1", argv=("true",), at_ns=0, service=False, error=None, out=name, err=name, files=name
    )
    (one / "commands.json").write_bytes(codec.line(CommandsDocument(False, 100, (entry,))))
    (one / "commands/2-left1.out").write_text("said")
    (one / "spinners.csv").write_text("spinner,cpu\n0,1\n")
    (two / "spinners.csv").write_text("spinner,cpu\n0,1\n1,2\n0,")
    found = MachineResults({"one": one, "two": two}, Clocks("one", {}, {}))
    joint_results.merge(program, split, where, {"one": 0, "two": 3}, found, whole)
    assert (whole / "spinners.csv").read_text() == "spinner,cpu\n0,1\n3,1\n4,2\n", "an unfinished line is left out"
    assert (whole / "commands/2-left1.out").read_text() == "said"
    document = orjson.loads((whole / "commands.json").read_bytes())
    assert [each["error"] for each in document["commands"]] == [
        "its machine left no record",
        None,
        "its machine left no record",
    ]
    assert (document["commands"][1]["t0_unix_ns"], document["commands"][2]["out"]) == (100, "commands/3-right2.out")


def test_results_of_a_machine_stay_in_their_directory(tmp_path: Path) -> None:
    packed = tmp_path / "results.tar"
    with tarfile.open(packed, "w") as archive:
        member = tarfile.TarInfo("../out")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(LabError, match=r"\.\./out"):
        joint_results.unpack(packed, tmp_path / "place")
    assert not (tmp_path / "out").exists()
