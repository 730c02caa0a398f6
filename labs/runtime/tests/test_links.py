"""A lab whose link runs: its spinner answers, delays packets, is watched over, and tells its counters at the end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.compile import compile
from ewan.labs.link import Change
from ewan.labs.plan import Plan, from_json, to_json
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.requests import LinkSetRequest, StatsRequest
from ewan.labs.runtime.spinner_stats import SpinnerStats
from ewan.labs.runtime.tests.lab import BINARY, traces
from ewan.labs.spec import from_template

pytestmark = pytest.mark.live

GOLDEN = Path(__file__).resolve().parents[3] / "tests/golden/dumbbell.plan.json"
LAB = f"rl{os.getpid()}"


@pytest.fixture
def plan() -> Plan:
    """The golden dumbbell, on the CPUs that this process may use."""
    golden = from_json(GOLDEN.read_bytes())
    cpus = sorted(os.sched_getaffinity(0))
    spinners = tuple(replace(spinner, cpu=cpus[-1]) for spinner in golden.spinners)
    return replace(golden, lab=LAB, spinners=spinners, host_cpus=tuple(cpus[:-1] or cpus))


@pytest.fixture
def state() -> Path:
    assert os.geteuid() == 0, "these tests make network namespaces: run them as root"
    return Path(f"/run/ewan-test-links-{os.getpid()}")


@pytest.fixture
def runtime(state: Path) -> Iterator[NetnsRuntime]:
    runtime = NetnsRuntime(BINARY, state)
    yield runtime
    runtime.down(LAB)
    assert traces(LAB, state) == []


def test_the_link_delays_and_counts(runtime: NetnsRuntime, plan: Plan, capfd: pytest.CaptureFixture[str]) -> None:
    runtime.up(plan)
    status = runtime.status(LAB)
    assert (status.state, status.note) == ("complete", "")
    pair = plan.pairs[0]
    assert runtime.exec(LAB, pair.source, ["ping", "-c", "3", "-i", "0.2", "-W", "10", pair.sink]) == 0
    found = re.search(r"rtt min/\S+ = ([\d.]+)", capfd.readouterr().out)
    assert found is not None
    assert float(found[1]) >= pair.rtt_ns / 10**6, "how exact the delay is, `verify` measures"
    (removed,) = runtime.down(LAB).spinners
    assert removed.stats is not None
    link = removed.stats.links["core"]
    assert link.forward.out_packets >= 3
    assert link.backward.out_packets >= 3


UP = """
import sys
from pathlib import Path
from ewan.labs.plan import from_json
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.lab import BINARY
print("ready", flush=True)
NetnsRuntime(BINARY, Path(sys.argv[1])).up(from_json(sys.stdin.buffer.read()))
"""


def test_killed_while_its_links_start(runtime: NetnsRuntime, state: Path, plan: Plan) -> None:
    for delay_s in 0.01, 0.02, 0.04, 0.08, 0.16, 0.32:
        command = [sys.executable, "-c", UP, str(state)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write(to_json(plan))
        process.stdin.close()
        time.sleep(delay_s)
        process.kill()
        process.wait()
        process.stdout.close()
        runtime.down(LAB)
        assert traces(LAB, state) == [], f"killed after {delay_s} s"


def test_a_link_that_does_not_exist_is_refused_with_the_ones_that_do(runtime: NetnsRuntime, plan: Plan) -> None:
    runtime.up(plan)
    with pytest.raises(LabError, match=f"no link cor: links are {plan.links[0].name}"):
        runtime.control(LAB, "cor", StatsRequest())
    with pytest.raises(LabError):
        runtime.control(LAB, 0, StatsRequest("no such link"))
    assert runtime.control(LAB, plan.links[0].name, StatsRequest()).ok


def test_an_answer_of_a_spinner_is_read_whole(runtime: NetnsRuntime, state: Path, plan: Plan) -> None:
    runtime.up(plan)
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(state / LAB / "spinner-0.sock"))
        stream.sendall(b'{"command":"stats"}\n')
        line = stream.makefile("rb").readline()
    assert codec.line(codec.decode(SpinnerStats, line, "stats")) == line


def two_links() -> Plan:
    """A parking lot of two hops that one spinner serves: hop1 and hop2."""
    plan = compile(
        from_template("parking-lot", {"name": LAB, "hops": "2", "cross_pairs": "0", "rtt": "10ms"}), host.facts()
    )
    names = tuple(link.name for link in plan.links)
    cpu = max(os.sched_getaffinity(0))
    return replace(plan, spinners=(replace(plan.spinners[0], cpu=cpu, links=names),))


def test_a_fault_ends_one_link_and_the_others_go_on(
    runtime: NetnsRuntime, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = two_links()
    monkeypatch.setenv("EWAN_FAULT_LINK", "hop2:panic")
    runtime.up(plan)
    first = plan.links[0]
    address = next(
        interface.addresses[0].split("/")[0]
        for node in plan.nodes
        if node.name == first.b.node
        for interface in node.interfaces
        if interface.name == first.b.interface
    )
    ping = ["ping", "-c", "3", "-i", "0.2", "-W", "1"]
    deadline = time.monotonic() + 10
    while runtime.status(LAB).state == "complete":
        pair = plan.pairs[0]
        runtime.exec(LAB, pair.source, [*ping, pair.sink])
        assert time.monotonic() < deadline
    status = runtime.status(LAB)
    assert status.note == "spinner 0: link hop2 has ended: a fault in the program: EWAN_FAULT_LINK asked for this"
    assert runtime.exec(LAB, first.a.node, [*ping, address]) == 0, "hop1 goes on"
    with pytest.raises(LabError, match="link hop2 has ended"):
        runtime.control(LAB, "hop2", LinkSetRequest.of(Change(rate_bps=10**8), "hop2", "both"))
    capfd.readouterr()


def test_a_spinner_that_hangs_ends_all_the_same(
    runtime: NetnsRuntime, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EWAN_FAULT_LINK", f"{plan.links[0].name}:hang")
    runtime.up(plan)
    (spinner,) = runtime.status(LAB).spinners
    pair = plan.pairs[0]
    assert runtime.exec(LAB, pair.source, ["ping", "-c", "1", "-W", "1", pair.sink]) != 0
    assert spinner.pid is not None
    os.kill(spinner.pid, signal.SIGTERM)
    deadline = time.monotonic() + 6
    while runtime.status(LAB).spinners[0].pid is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_spinner_that_died_shows(runtime: NetnsRuntime, plan: Plan) -> None:
    runtime.up(plan)
    (spinner,) = runtime.status(LAB).spinners
    assert spinner.pid is not None
    os.kill(spinner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while runtime.status(LAB).state == "complete":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    status = runtime.status(LAB)
    assert (status.state, status.note) == ("incomplete", "spinner 0: not running")
    with pytest.raises(LabError, match="spinner 0 does not answer"):
        runtime.control(LAB, 0, StatsRequest())
