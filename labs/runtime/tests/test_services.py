"""Services of nodes: started in their node and in their order, ended with the lab, in both clocks. Needs root.

The programs here are the shell's; the routing daemons' and switches' own tests are with those who write their services.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.plan import Plan, Service, to_json
from ewan.labs.runtime import kernel
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY, own_state, run, small, traces
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.untimed

LAB = f"rs{os.getpid()}"
SEE = "ls /sys/class/net; getent hosts right; cat words"


def setup(name: str, script: str, **files: str) -> Service:
    return Service(name, "setup", ("sh", "-c", script, "{run}"), files, None)


def daemon(name: str, script: str) -> Service:
    """Ready when its script has made the file `up`."""
    return Service(name, "daemon", ("sh", "-c", script, "{run}"), {}, "up")


def stay(up: str) -> str:
    """A script that makes this file and stays. The shell itself waits, and starts nothing more once it is up."""
    return f"mkfifo wait; : > {up}; read x < wait"


def with_services(plan: Plan, node: str, *services: Service) -> Plan:
    nodes = (replace(each, services=services) if each.name == node else each for each in plan.nodes)
    return replace(plan, nodes=tuple(nodes))


def serving() -> Plan:
    """`small` with a daemon in two nodes, and before it in one of them something that comes to its end."""
    look = setup("look", SEE, words="{run}\n")
    plan = with_services(small(LAB), "router", look, daemon("stay", stay("up")))
    return with_services(plan, "left", daemon("stay", stay("{run}/up")))


@pytest.fixture
def state() -> Iterator[Path]:
    with own_state("services") as root:
        yield root


@pytest.fixture
def runtime(state: Path) -> NetnsRuntime:
    return NetnsRuntime(BINARY, state)


def test_services_run_in_their_node_and_end_with_the_lab(runtime: NetnsRuntime, state: Path) -> None:
    runtime.up(serving())
    own = state / LAB / "nodes" / "router"
    *interfaces, names, directory = (own / "look.log").read_text().splitlines()
    assert interfaces == ["eth0", "eth1", "lo"], "the node's, and no other"
    assert names.split()[1] == "right" and names.split()[0] in ("10.99.2.1", "fd99::2:1")
    assert directory == str(own)
    assert int((own / "started").read_text()) > 0
    nodes = {node.name: node.pids for node in runtime.status(LAB).nodes}
    assert {name: len(pids) for name, pids in nodes.items()} == {"left": 1, "router": 1, "right": 0}
    daemon = nodes["router"][0]
    assert os.getsid(daemon) == daemon
    removed = runtime.down(LAB)
    assert {process.pid for process in removed.processes} == {*nodes["left"], *nodes["router"]}
    assert traces(LAB, state) == []


@pytest.mark.parametrize(
    ("service", "said"),
    [
        (setup("conf", "echo reading; echo line 3: unknown word >&2; exit 1"), "service conf: line 3: unknown word"),
        (daemon("conf", "echo socket taken; exit 1"), "service conf: it ended: socket taken"),
    ],
)
def test_a_lab_whose_service_fails_is_refused_in_one_line_and_leaves_nothing(
    runtime: NetnsRuntime, state: Path, service: Service, said: str
) -> None:
    before = daemon("stay", stay("up"))
    with pytest.raises(LabError) as refused:
        runtime.up(with_services(small(LAB), "router", before, service))
    assert str(refused.value) == f"node router: {said}"
    assert traces(LAB, state) == []


def test_a_missing_program_is_told_with_its_package_before_anything_is_made(state: Path) -> None:
    plan = with_services(small(LAB), "router", Service("ospfd", "daemon", ("/nowhere/ospfd",), {}, None))
    # It gets SIGKILL before the first thing that it makes.
    command = (str(BINARY), "apply", "--plan", "/dev/stdin", "--state", str(state / LAB))
    result = run(*command, environment={"EWAN_FAULT_AFTER": "0"}, text=to_json(plan))
    assert result.returncode == 2
    assert result.stderr.decode() == (
        "node router: service ospfd: there is no program /nowhere/ospfd here: "
        "install the package frr (apt-get install frr)\n"
    )


def test_services_of_a_killed_up_are_found_by_down(runtime: NetnsRuntime, state: Path) -> None:
    """SIGKILL before each of the last steps: files, starts of services, the end."""
    command = (str(BINARY), "apply", "--plan", "/dev/stdin", "--state", str(state / LAB))
    text = to_json(serving())
    steps = 0
    while run(*command, environment={"EWAN_FAULT_AFTER": str(10**6 if steps > 200 else steps)}, text=text).returncode:
        runtime.down(LAB)
        assert traces(LAB, state) == [], f"step {steps}"
        steps += 1
    seen = len([trace for trace in traces(LAB, state) if trace.startswith("process")])
    assert seen >= 2, "the search that finds nothing afterwards finds the daemons now"
    assert 40 < steps < 200
    runtime.down(LAB)
    assert traces(LAB, state) == []


def test_services_run_in_the_virtual_kernel(tmp_path: Path) -> None:
    plan = with_services(
        small(LAB),
        "router",
        setup("look", SEE, words="{run}\n"),
        daemon("count", ": > up; while sleep 1; do echo tick; done"),
    )
    own = f"/run/ewan/{LAB}/nodes/router"
    program = Program(
        commands=(
            Command("right", ("cat", f"{own}/look.log", f"{own}/started")),
            Command("right", ("cat", f"{own}/count.log"), 10 * NS_PER_SECOND + NS_PER_SECOND // 2),
        ),
        longest_ns=60 * NS_PER_SECOND,
    )
    result = VirtualRuntime(BINARY, kernel.kernel(print)).run(plan, program, tmp_path / "run")
    lines = (result.directory / "commands/1-right.out").read_text().splitlines()
    assert lines[:3] == ["eth0", "eth1", "lo"]
    assert lines[3].split()[1] == "right" and lines[4] == own
    assert NS_PER_SECOND <= int(lines[5]) < 3 * NS_PER_SECOND, "after the interfaces' first second"
    ticks = (result.directory / "commands/2-right.out").read_text().split()
    assert len(ticks) == 10


def test_a_failing_service_ends_a_virtual_run_in_one_line(tmp_path: Path) -> None:
    plan = with_services(small(LAB), "router", setup("conf", "echo line 3: unknown word; exit 1"))
    with pytest.raises(LabError) as refused:
        VirtualRuntime(BINARY, kernel.kernel(print)).run(plan, Program(longest_ns=NS_PER_SECOND), tmp_path / "run")
    assert str(refused.value) == f"lab {LAB}: node router: service conf: line 3: unknown word"


def test_the_lock_of_a_killed_up_is_free(runtime: NetnsRuntime, state: Path) -> None:
    """A daemon holds nothing of its starter's: who comes next gets the lock of the state directory at once."""
    runtime.up(serving())
    pids = [pid for node in runtime.status(LAB).nodes for pid in node.pids]
    for pid in pids:
        targets = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
        assert all(str(state / LAB / "nodes") in target or target == "/dev/null" for target in targets), targets
        os.kill(pid, signal.SIGKILL)
    runtime.down(LAB)
    assert traces(LAB, state) == []
