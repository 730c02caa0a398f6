"""Traffic as a part of a program: the same T0 as commands, events and counters, and what stays when it fails."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from ewan.generator import traffic_request
from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.change import compile_change, wanted
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.record.events import link_change
from ewan.labs.record.traffic import BulkWork, Endpoint, FlowRequest, SocketOptions, TrafficRequest
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY, StopAfter, own_state
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

# Kills the traffic of this machine's one run, be it the guest of the virtual clock.
KILL = """
import os, pathlib, sys
for entry in pathlib.Path("/proc").iterdir():
    if entry.name.isdigit():
        words = (entry / "cmdline").read_bytes().split(b"\\0")
        if words[1:2] == [b"traffic"] and sys.argv[1].encode() in b" ".join(words):
            print("killed", flush=True)
            os.kill(int(entry.name), 9)
"""


def lab(clock: str) -> Plan:
    words = {"name": f"tr{os.getpid()}", "rtt": "20ms", "rate": "20M", "ip": "4", "buffer": "1BDP"}
    return compile(from_template("dumbbell", words), host.virtual_facts() if clock == "virtual" else host.facts())


def traffic(plan: Plan, clock: str, stop_ns: int, congestion: str = "reno") -> TrafficRequest:
    """One bulk flow from left1 to right1, from T0 on."""

    def end(name: str) -> Endpoint:
        return traffic_request.end(plan.lab, name, traffic_request.addresses_of(plan)[name])

    flow = FlowRequest(
        name="bulk left1 to right1",
        from_=end("left1"),
        to=end("right1"),
        stop_ns=stop_ns,
        socket=SocketOptions(congestion),
        work=BulkWork(),
    )
    return TrafficRequest(
        clock="virtual" if clock == "virtual" else "live",
        cpus=plan.host_cpus,
        seed=1,
        longest_ns=600 * NS_PER_SECOND,
        sample_ns=100 * NS_PER_MS,
        series_ns=100 * NS_PER_MS,
        flows=(flow,),
    )


def execute(plan: Plan, clock: str, program: Program, place: Path) -> None:
    if clock == "virtual":
        VirtualRuntime(BINARY).run(plan, program, place)
        return
    place.mkdir()
    with own_state("traffic") as state:
        runtime = NetnsRuntime(BINARY, state)
        runtime.up(plan)
        try:
            runtime.batch(plan.lab, program, place)
        finally:
            runtime.down(plan.lab)


def core(place: Path) -> list[dict[str, int]]:
    with (place / "links.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["link"], row["direction"]) == ("core", "forward")]
    return [{key: int(value) for key, value in row.items() if key not in ("link", "direction")} for row in rows]


def carried_bps(rows: list[dict[str, int]], first_s: float, last_s: float) -> float:
    """What the link sent between two instants, by the rows next to them."""
    ends = [min(rows, key=lambda row: abs(row["time_ns"] - at_s * NS_PER_SECOND)) for at_s in (first_s, last_s)]
    sent, took = (ends[1][key] - ends[0][key] for key in ("sent_bytes", "time_ns"))
    return 8 * sent * NS_PER_SECOND / took


CLOCKS = pytest.mark.parametrize("clock", ["virtual", pytest.param("live", marks=pytest.mark.live)])


@CLOCKS
def test_traffic_commands_changes_and_counters_have_one_beginning(tmp_path: Path, clock: str) -> None:
    plan, place = lab(clock), tmp_path / "run"
    change = compile_change(plan, plan.links[0], "forward", wanted({"rate": "5M"}))
    program = Program(
        commands=(Command("left1", ("ping", "-c", "1", "right1"), at_ns=NS_PER_SECOND),),
        longest_ns=60 * NS_PER_SECOND,
        traffic=traffic(plan, clock, 6 * NS_PER_SECOND),
        events=(link_change(3 * NS_PER_SECOND, "core", "forward", change),),
        watch_ns=100 * NS_PER_MS,
    )
    execute(plan, clock, program, place)
    rows = core(place)
    # Full links: what TCP loses at its start and at the change is outside of what is looked at.
    assert carried_bps(rows, 1, 2.9) == pytest.approx(20e6, rel=0.03)
    assert carried_bps(rows, 4, 5.9) == pytest.approx(5e6, rel=0.03)
    answer = orjson.loads((place / "traffic/traffic.json").read_bytes())
    (flow,) = answer["flows"]
    assert not answer["interrupted"] and flow["error"] is None
    late_ns = 50 * NS_PER_MS if clock == "live" else 0
    assert 0 <= flow["started_ns"] - flow["scheduled_ns"] <= late_ns
    assert flow["received_bytes"] <= rows[-1]["sent_bytes"]
    (ping,) = orjson.loads((place / "commands.json").read_bytes())["commands"]
    assert ping["status"] == 0 and 0 <= ping["started_ns"] - NS_PER_SECOND <= 50 * NS_PER_MS
    assert 6 * NS_PER_SECOND <= rows[-1]["time_ns"] < 20 * NS_PER_SECOND


@CLOCKS
def test_traffic_that_dies_ends_the_run_which_keeps_what_it_has(tmp_path: Path, clock: str) -> None:
    plan, place = lab(clock), tmp_path / "run"
    program = Program(
        commands=(
            Command("left1", ("python3", "-c", KILL, str(tmp_path) if clock == "live" else "/run/lab"), NS_PER_SECOND),
            Command("right1", ("sleep", "1000")),
        ),
        longest_ns=1000 * NS_PER_SECOND,
        traffic=traffic(plan, clock, 500 * NS_PER_SECOND),
        watch_ns=100 * NS_PER_MS,
    )
    with pytest.raises(LabError, match=r"traffic: it ended without a word \(SIGKILL\)"):
        execute(plan, clock, program, place)
    assert (place / "commands/1-left1.out").read_text() == "killed\n"
    _, sleep = orjson.loads((place / "commands.json").read_bytes())["commands"]
    assert sleep["stopped"] and sleep["ended_ns"] < 100 * NS_PER_SECOND
    assert core(place)[-1]["sent_bytes"] > 1_000_000
    assert (place / "links.json").exists()


@CLOCKS
def test_traffic_that_is_refused_says_why(tmp_path: Path, clock: str) -> None:
    plan, place = lab(clock), tmp_path / "run"
    program = Program(
        commands=(Command("left1", ("sleep", "1000")),),
        longest_ns=1000 * NS_PER_SECOND,
        traffic=traffic(plan, clock, NS_PER_SECOND, congestion="nonsense"),
    )
    with pytest.raises(LabError, match=r"traffic: .*nonsense"):
        execute(plan, clock, program, place)
    (sleep,) = orjson.loads((place / "commands.json").read_bytes())["commands"]
    assert sleep["ended_ns"] is None or sleep["ended_ns"] < 100 * NS_PER_SECOND


def test_an_interruption_ends_traffic_and_its_records_are_written(tmp_path: Path) -> None:
    plan, place = lab("virtual"), tmp_path / "run"
    day_ns = 24 * 3600 * NS_PER_SECOND
    program = Program(longest_ns=day_ns, traffic=replace(traffic(plan, "virtual", day_ns), longest_ns=day_ns))
    stop = StopAfter(place, 20 * NS_PER_SECOND)
    assert VirtualRuntime(BINARY).run(plan, program, place, stop).interrupted
    answer = orjson.loads((place / "traffic/traffic.json").read_bytes())
    assert answer["interrupted"] and answer["flows"][0]["received_bytes"] > 1_000_000


@CLOCKS
def test_time_that_is_over_ends_traffic_which_keeps_its_own_time(tmp_path: Path, clock: str) -> None:
    plan, place = lab(clock), tmp_path / "run"
    longest_ns = 2 * NS_PER_SECOND
    request = replace(traffic(plan, clock, 100 * NS_PER_SECOND), longest_ns=longest_ns)
    execute(plan, clock, Program(longest_ns=longest_ns, traffic=request), place)
    answer = orjson.loads((place / "traffic/traffic.json").read_bytes())
    assert not answer["interrupted"]
    assert answer["flows"][0]["ended_ns"] == pytest.approx(longest_ns, abs=500 * NS_PER_MS)


@pytest.mark.live
def test_traffic_does_not_outlive_the_program_that_started_it(tmp_path: Path) -> None:
    plan, place = lab("live"), tmp_path / "run"
    place.mkdir()
    program = Program(longest_ns=10**12, traffic=traffic(plan, "live", 500 * NS_PER_SECOND))
    (place / "program.json").write_bytes(program.to_json())
    with own_state("orphan") as state:
        runtime = NetnsRuntime(BINARY, state)
        runtime.up(plan)
        try:
            command = [
                BINARY,
                "batch",
                "--state",
                state / plan.lab,
                "--program",
                place / "program.json",
                "--out",
                place,
            ]
            batch = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL)
            assert wait_for(lambda: bool(processes(place)))
            batch.send_signal(signal.SIGKILL)
            batch.wait()
            assert wait_for(lambda: not processes(place))
        finally:
            runtime.down(plan.lab)


def processes(place: Path) -> list[int]:
    """The traffic of one run."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if words[1:2] == ["traffic"] and str(place) in " ".join(words):
                found.append(process.pid)
    return found


def wait_for(condition: Any) -> bool:
    until = time.monotonic() + 20
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
