"""Probes whose ends belong to two processes, as on two machines, give the same results as one process with both ends.

A lab of namespaces with the left half of a dumbbell on the machine "one" and the right half on "two"; both are this
host, so their clocks agree. Needs root."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import pytest

from ewan.extras.machines.joint_probes import JointProbes, Offset
from ewan.extras.machines.results import CompletedProgram
from ewan.generator.traffic_request import addresses_of, end
from ewan.labs.base.codec import data_of, from_data
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.probe_documents import Probe
from ewan.labs.runtime.tests.lab import BINARY, own_state
from ewan.labs.spec import load

pytestmark = pytest.mark.live

MS = 1_000_000
LAB = "tjoint"
DESCRIPTION = f"""
name: {LAB}
topology: dumbbell
rtt: 20ms
wan: {{rate: 20Mbit/s, buffer: 1BDP, backward: {{loss: 10%}}}}
"""
HALVES = {"one": ("left1", "r1"), "two": ("right1", "r2")}


class Local:
    """A program of this host in place of one on another machine."""

    def __init__(self, machine: str, argv: Sequence[str]) -> None:
        self.machine = machine
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def write(self, data: bytes) -> None:
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(data)
            self.child.stdin.flush()
        except OSError as error:
            raise LabError(f"machine {self.machine}: the program has ended ({error})") from None

    def readline(self, longest_s: float | None = None) -> bytes:
        assert self.child.stdout is not None
        return self.child.stdout.readline()

    def wait(self, longest_s: float | None = None) -> CompletedProgram:
        assert self.child.stdout is not None and self.child.stderr is not None
        code = self.child.wait(longest_s)
        return CompletedProgram(code, self.child.stdout.read(), self.child.stderr.read())

    def close(self) -> None:
        assert self.child.stdin is not None
        with suppress(OSError):
            self.child.stdin.close()
        self.child.terminate()
        self.child.wait()


class Machines:
    """Starts the programs of both machines, and compares their clocks."""

    def __init__(self) -> None:
        self.started: dict[str, Local] = {}
        self.compared = 0

    def start(self, machine: str, argv: Sequence[str]) -> Local:
        self.started[machine] = Local(machine, [str(BINARY), *argv])
        return self.started[machine]

    def offsets(self) -> Mapping[str, Offset]:
        self.compared += 1
        return {"two": Offset(0, 1_500)}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    file = tmp_path_factory.mktemp("joint") / "joint.lab.yaml"
    file.write_text(DESCRIPTION)
    return compile(load(file), HostFacts(cpus=(0, 1), networks=()))


@pytest.fixture(scope="module")
def runtime(plan: Plan) -> Iterator[NetnsRuntime]:
    with own_state("joint") as state:
        runtime = NetnsRuntime(BINARY, state)
        runtime.up(plan)
        yield runtime


def probes_of(plan: Plan, machines: Machines) -> JointProbes:
    machine_of = {end(LAB, node, "").netns: name for name, nodes in HALVES.items() for node in nodes}
    return JointProbes(machines.start, machine_of, machines.offsets, dict.fromkeys(HALVES, plan.host_cpus), BINARY)


def stream(
    plan: Plan, source: str, sink: str, size: int, interval_ns: int, packets: int, **more: Any
) -> dict[str, Any]:
    address = addresses_of(plan)
    ends = {"from": end(LAB, source, address[source]).data, "to": end(LAB, sink, address[sink]).data}
    name = f"{source} to {sink}"
    return {"name": name, **ends, "packet_bytes": size, "interval_ns": interval_ns, "packets": packets, **more}


def wanted(plan: Plan) -> list[dict[str, Any]]:
    there, back = ("left1", "right1"), ("right1", "left1")
    transfer = stream(plan, *there, 1500, 1, 1)
    return [
        {
            "kind": "delay",
            "name": "delay",
            "drain_ns": 50 * MS,
            "streams": [stream(plan, *way, 100, MS, 300, raw=True) for way in (there, ("left1", "r1"))],
        },
        {"kind": "loss", "name": "loss", "drain_ns": 50 * MS, "streams": [stream(plan, *back, 100, MS // 5, 3000)]},
        {
            "kind": "rtt",
            "name": "rtt",
            "drain_ns": 100 * MS,
            "streams": [stream(plan, *there, 100, 2 * MS, 100, raw=True), stream(plan, *back, 100, 2 * MS, 100)],
        },
        # 30 Mbit/s: the queue of 50 kB is full after 40 ms.
        {
            "kind": "saturate",
            "name": "rate",
            "drain_ns": 100 * MS,
            "series_ns": 100 * MS,
            "streams": [stream(plan, *there, 1462, MS * 2 // 5, 1500, skip_ns=150 * MS)],
        },
        {
            "kind": "tcp",
            "name": "tcp",
            "from": transfer["from"],
            "to": transfer["to"],
            "congestion": "reno",
            "duration_ns": 900 * MS,
            "steady_ns": 400 * MS,
            "connect_timeout_ns": 5000 * MS,
        },
    ]


def probes_in(data: Any) -> tuple[Probe, ...]:
    found: tuple[Probe, ...] = from_data(cast(Any, tuple[Probe, ...]), data, "probes")
    return found


Answer = dict[str, Any]


@pytest.fixture(scope="module")
def answers(plan: Plan, runtime: NetnsRuntime) -> tuple[Answer, Answer, Machines, list[str]]:
    """The answers of one process, and of two; the machines of the two, and the lines that they sent meanwhile."""
    told: list[str] = []
    alone = data_of(runtime.probe(LAB, probes_in(wanted(plan)), lambda line: None))
    machines = Machines()
    both = data_of(probes_of(plan, machines).run(probes_in(wanted(plan)), told.append))
    return alone, both, machines, told


def result(answer: Answer, name: str) -> Answer:
    return next(each for each in answer["results"] if each["name"] == name)


def keys(value: object) -> object:
    """The names of everything in an answer; of lists by their first item."""
    if isinstance(value, dict):
        return {key: keys(each) for key, each in value.items() if key not in ("clocks_ns", "loss_runs")}
    return [keys(value[0])] if isinstance(value, list) and value else type(value) is str


def test_the_answer_has_the_same_shape(answers: tuple[Answer, Answer, Machines, list[str]]) -> None:
    alone, both, _, told = answers
    assert not [each for each in both["results"] if each["kind"] == "failed"], both
    assert keys(alone) == keys(both)
    assert [line.split(" (")[0] for line in told][:2] == ["probe 1 of 5: delay", "probe 2 of 5: loss"]


def test_one_way_delays_agree(answers: tuple[Answer, Answer, Machines, list[str]]) -> None:
    alone, both, machines, _ = answers
    for ours, theirs in zip(*(result(each, "delay")["streams"] for each in (alone, both)), strict=True):
        assert theirs["sent_packets"] == theirs["received_packets"] == len(theirs["delays_ns"])
        assert theirs["delay"]["min_ns"] == pytest.approx(ours["delay"]["min_ns"], abs=0.3 * MS)
        assert theirs["delay"]["p50_ns"] == pytest.approx(ours["delay"]["p50_ns"], abs=1 * MS)
    far, near = result(both, "delay")["streams"]
    assert 10 * MS <= far["delay"]["min_ns"] <= 11 * MS
    # Only the first one is read off two clocks.
    assert far["clocks_ns"] == 1_500 and "clocks_ns" not in near
    assert "clocks_ns" not in result(both, "rtt")["streams"][0]
    # Before and after each of three probes; where one follows the other at once, one comparison is of both.
    assert 4 <= machines.compared <= 6


def test_losses_agree(answers: tuple[Answer, Answer, Machines, list[str]]) -> None:
    for each in answers[:2]:
        (stream,) = result(each, "loss")["streams"]
        assert stream["sent_packets"] == stream["received_packets"] + stream["lost_packets"] > 2000
        assert 0.07 < stream["lost_packets"] / stream["sent_packets"] < 0.13
        assert sum(length * count for length, count in stream["loss_runs"]) <= stream["lost_packets"]


def test_round_trips_agree_in_both_directions(answers: tuple[Answer, Answer, Machines, list[str]]) -> None:
    for each in answers[:2]:
        for stream in result(each, "rtt")["streams"]:
            assert 20 * MS <= stream["delay"]["min_ns"] <= 21 * MS
            assert 50 < stream["received_packets"] <= stream["sent_packets"]


def test_rate_and_queue_agree(answers: tuple[Answer, Answer, Machines, list[str]]) -> None:
    for each in answers[:2]:
        (stream,) = result(each, "rate")["streams"]
        steady = stream["steady"]
        assert steady["busy_packets"] * 1500 * 8e9 / steady["busy_window_ns"] == pytest.approx(20e6, rel=0.01)
        assert steady["delay"]["p90_ns"] == pytest.approx(30 * MS, rel=0.1)
        assert sum(stream["arrived_series_packets"]) == stream["received_packets"] < stream["sent_packets"]


def test_goodput_agrees(answers: tuple[Answer, Answer, Machines, list[str]]) -> None:
    alone, both = (result(each, "tcp") for each in answers[:2])
    for transfer in (alone, both):
        assert transfer["goodput_bps"] == pytest.approx(20e6 * 1448 / 1538, rel=0.05)
        assert transfer["connect_ns"] > 20 * MS and transfer["congestion"] == "reno"
        assert 0 <= transfer["idle_ratio"] <= 1
    # What was acknowledged, in place of what the receiver counted.
    assert both["received_bytes"] == pytest.approx(alone["received_bytes"], rel=0.15)


def test_a_probe_that_fails_on_one_machine_is_dropped_on_the_other(plan: Plan, runtime: NetnsRuntime) -> None:
    good = stream(plan, "left1", "right1", 100, MS, 20)
    nowhere = {**good, "to": {**good["to"], "address": "203.0.113.9"}}
    deaf = {"kind": "tcp", "name": "deaf", "duration_ns": 100 * MS, "steady_ns": 50 * MS, "from": good["from"]}
    asked: list[dict[str, Any]] = [
        {"kind": "delay", "name": "nowhere", "drain_ns": 10 * MS, "streams": [nowhere]},
        {**deaf, "to": good["to"], "congestion": "carrier-pigeon", "connect_timeout_ns": 5000 * MS},
        {"kind": "delay", "name": "good", "drain_ns": 50 * MS, "streams": [good]},
    ]
    nowhere_, deaf_, good_ = data_of(probes_of(plan, Machines()).run(probes_in(asked), lambda line: None))["results"]
    assert nowhere_["kind"] == "failed" and nowhere_["error"].startswith("machine two: "), nowhere_
    assert "203.0.113.9" in nowhere_["error"]
    assert deaf_["kind"] == "failed" and deaf_["error"].startswith("machine one: "), deaf_
    assert good_["streams"][0]["received_packets"] == good_["streams"][0]["sent_packets"] > 10


def test_a_machine_that_dies_ends_all_in_one_line(plan: Plan, runtime: NetnsRuntime) -> None:
    machines = Machines()
    long = {"kind": "delay", "name": "long", "drain_ns": 10 * MS}
    asked = [{**long, "streams": [stream(plan, "left1", "right1", 100, 10 * MS, 100)]}]
    killer = threading.Timer(0.3, lambda: machines.started["two"].child.kill())
    begun = time.monotonic()
    with pytest.raises(LabError, match=r"^machine two: the program has ended ") as raised:
        probes_of(plan, machines).run(probes_in(asked), lambda line: killer.start())
    assert "\n" not in str(raised.value)
    assert time.monotonic() - begun < 20
    assert machines.started["one"].child.poll() is not None


def test_an_end_that_no_machine_has_is_refused(plan: Plan) -> None:
    lost = stream(plan, "left1", "right1", 100, 1, 1) | {"to": end(LAB, "core", "10.0.0.1").data}
    asked = {"kind": "delay", "name": "d", "drain_ns": 1, "streams": [lost]}
    machines = Machines()
    with pytest.raises(LabError, match=f"^/run/netns/ewan-{LAB}-core: no machine has this network namespace$"):
        probes_of(plan, machines).run(probes_in([asked]), lambda line: None)
    assert not machines.started


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('{"end": {}}\n', "an order out of turn: End"),
        ('{"here": {"format": "ewan-joint/0", "netns": [], "cpus": []}}\n', 'orders of "ewan-joint/0"'),
        ("no\n", "order: expected"),
    ],
)
def test_orders_that_make_no_sense_are_refused(lines: str, says: str) -> None:
    done = subprocess.run([BINARY, "probe", "--joint"], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stderr and done.stderr.count("\n") == 1
