"""A live run whose spinner stands still for a moment: that second is marked, with the cause. The virtual clock watches
nothing."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from ewan.generator import records
from ewan.generator.tests import schedules
from ewan.labs import host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.record import disturbances, tables
from ewan.labs.record.bounds import RELEASE_P99_NS
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, DisturbanceWatch, Program
from ewan.labs.runtime.tests.lab import BINARY, own_state
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

STOPPED_MS, SECOND = 60, 2
WATCH = DisturbanceWatch(disturbances.EVERY_NS, RELEASE_P99_NS)
PINGS = (Command("left1", ("ping", "-q", "-i", "0.01", "-c", "350", "right1")),) * 4
"""3.5 s of 400 packets a second each way: those of 60 ms are far more than one in a hundred of a second's."""


def plan(clock: str) -> Plan:
    words = {"name": f"di{os.getpid()}", "rtt": "20ms", "rate": "20M", "ip": "4"}
    return compile(from_template("dumbbell", words), host.virtual_facts() if clock == "virtual" else host.facts())


def spinner_of(state: Path) -> int:
    """The process of the lab's one spinner."""
    (found,) = [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if (words := process.info["cmdline"] or [])[1:2] == ["link"] and str(state) in words
    ]
    return int(found)


@pytest.mark.live
def test_the_second_in_which_a_spinner_stood_still_is_marked_with_its_cause(tmp_path: Path) -> None:
    lab = plan("live")
    with own_state("disturbances") as state:
        runtime = NetnsRuntime(BINARY, state)
        runtime.up(lab)
        try:
            spinner = spinner_of(state / lab.lab)
            stop = f"kill -STOP {spinner}; sleep {STOPPED_MS / 1000}; kill -CONT {spinner}"
            at_ns = SECOND * NS_PER_SECOND + 400 * NS_PER_MS
            commands = (*PINGS, Command("left1", ("sh", "-c", stop), at_ns))
            program = Program(commands=commands, longest_ns=30 * NS_PER_SECOND, disturbances=WATCH)
            runtime.batch(lab.lab, program, tmp_path)
        finally:
            runtime.down(lab.lab)
    watched = records.disturbed(tmp_path)
    assert watched is not None
    found, until_ns = watched
    assert 3.4 * NS_PER_SECOND < until_ns < 10 * NS_PER_SECOND
    # A busy machine may have taken the CPU in other seconds too, but this one is marked whatever the machine does.
    assert SECOND in disturbances.seconds(found), found
    own = [each for each in found if each.marks and disturbances.seconds([each]) == [SECOND]]
    cpu = lab.spinners[0].cpu
    assert {each.kind for each in own} == {"late"} and {each.link for each in own} == {"core"}
    assert all(f": CPU {cpu} " in each.words and "was taken from its links" in each.words for each in own)
    line = disturbances.summary(found, until_ns)
    assert line is not None and f"{SECOND} s" in line
    # The rows add up to what was sent, and the gap is in that second's, whatever gaps others have.
    assert records.collect(tmp_path, schedules.schedule()) is None
    releases, spinners, machine = (tables.read(tmp_path, name) for name in disturbances.TABLES)
    assert releases["released_packets"].sum() == pytest.approx(2 * 4 * 350, abs=40)
    stopped_ns, end_ns = STOPPED_MS * NS_PER_MS, (SECOND + 1) * NS_PER_SECOND
    (own_row,) = [
        row for row in spinners.iter_rows(named=True) if row["time_ns"] - row["interval_ns"] < at_ns < row["time_ns"]
    ]
    # Asleep, it misses its CPU from the next frame on: one comes each 10 ms, there or back.
    assert min(own_row["gap_max_ns"], own_row["taken_ns"]) >= stopped_ns - 10 * NS_PER_MS
    assert own_row["time_ns"] == pytest.approx(end_ns, abs=500 * NS_PER_MS)
    assert machine["interval_ns"].sum() == pytest.approx(until_ns, abs=100 * NS_PER_MS), "from T0 on, without a hole"
    assert machine["cpu_ns"].sum() == pytest.approx((os.cpu_count() or 1) * until_ns, rel=0.1)
    assert not any(each.kind in ("step", "clock source") for each in found), "nobody sets this machine's clock"


@pytest.mark.virtual
def test_the_virtual_clock_watches_nothing(tmp_path: Path) -> None:
    program = Program(commands=PINGS, longest_ns=30 * NS_PER_SECOND, disturbances=WATCH)
    VirtualRuntime(BINARY).run(plan("virtual"), program, tmp_path)
    assert (tmp_path / "commands.json").exists()
    assert not [name for name in disturbances.TABLES if (tmp_path / f"{name}.csv").exists()]
    assert records.disturbed(tmp_path) is None
