"""Labs of real namespaces: they come up, work, and go without a trace. Needs root; fails where it is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.labs.base.codec import replace
from ewan.labs.plan import Spinner, Stack, digest, to_json
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.lab import BINARY, FORWARDING, links_of_host, own_state, run, small, traces

pytestmark = pytest.mark.untimed

LAB = f"rt{os.getpid()}"
TCP = Path("/proc/sys/net/ipv4")


@pytest.fixture
def state() -> Iterator[Path]:
    with own_state("runtime") as root:
        yield root
        left = [directory.name for directory in root.glob("*")]
    assert not left, f"a test left {left}"


@pytest.fixture
def runtime(state: Path) -> NetnsRuntime:
    return NetnsRuntime(BINARY, state)


def output(runtime: NetnsRuntime, capfd: pytest.CaptureFixture[str], node: str, *argv: str) -> str:
    capfd.readouterr()
    assert runtime.exec(LAB, node, argv) == 0
    return capfd.readouterr().out


def test_a_lab_comes_up_works_and_goes(runtime: NetnsRuntime, state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = small(LAB)
    runtime.up(plan)
    assert runtime.names() == [LAB]
    assert runtime.load(LAB).plan == plan
    status = runtime.status(LAB)
    assert (status.state, status.note, status.plan) == ("complete", "", digest(plan))
    assert [node.name for node in status.nodes] == ["left", "router", "right"]
    for family in "-4", "-6":
        assert "1 received" in output(runtime, capfd, "left", "ping", family, "-c1", "-W2", "right")
    assert len(traces(LAB, state)) >= 3 * 2, "the search that finds nothing afterwards finds the lab now"
    removed = runtime.down(LAB)
    assert len(removed.namespaces) == 3
    assert traces(LAB, state) == []
    assert not state.exists()


def test_interfaces_are_as_the_plan_says(runtime: NetnsRuntime, capfd: pytest.CaptureFixture[str]) -> None:
    runtime.up(small(LAB))
    (link,) = orjson.loads(output(runtime, capfd, "left", "ip", "-d", "-j", "link", "show", "dev", "eth0"))
    assert link["address"] == "02:00:00:00:00:01"
    assert link["operstate"] == "UP"
    assert (link["num_tx_queues"], link["num_rx_queues"], link["gso_max_segs"]) == (1, 1, 1)
    addresses = output(runtime, capfd, "left", "ip", "-o", "address", "show", "dev", "eth0")
    assert "10.99.1.1/30" in addresses
    assert "fd99::1:1/126" in addresses
    assert "fe80" not in addresses, "a link-local address sends packets of its own"
    assert output(runtime, capfd, "left", "ip", "neigh").count("PERMANENT") == 2
    (qdisc,) = orjson.loads(output(runtime, capfd, "left", "tc", "-j", "qdisc", "show", "dev", "eth0"))
    assert qdisc["kind"] == "tbf"
    assert qdisc["options"]["rate"] * 8 == 50_000_000_000, "more than 32 bits hold"
    assert "limit 1000p" in output(runtime, capfd, "right", "tc", "qdisc", "show", "dev", "eth0")
    assert output(runtime, capfd, "router", "cat", "/proc/sys/net/ipv4/ip_forward") == "1\n"
    steered = int(
        output(runtime, capfd, "left", "cat", "/sys/class/net/eth0/queues/rx-0/rps_cpus").replace(",", ""), 16
    )
    assert steered == 1 << min(os.sched_getaffinity(0))
    runtime.down(LAB)


def test_a_host_with_a_stack_of_its_own_has_its_sysctls_and_routes(
    runtime: NetnsRuntime, capfd: pytest.CaptureFixture[str]
) -> None:
    """And no other node has them, nor the machine."""
    before = {name: TCP.joinpath(name).read_text() for name in ("tcp_sack", "tcp_rmem")}
    plan = small(LAB, sysctls=FORWARDING | {"net/ipv4/tcp_sack": "0", "net/ipv4/tcp_rmem": "4096 50000 50000"})
    left, *others = plan.nodes
    runtime.up(replace(plan, nodes=(replace(left, stack=Stack(True, 17_520)), *others)))
    assert output(runtime, capfd, "left", "sysctl", "-n", "net.ipv4.tcp_sack", "net.ipv4.tcp_rmem").split() == [
        *("0", "4096", "50000", "50000")
    ]
    assert output(runtime, capfd, "right", "sysctl", "-n", "net.ipv4.tcp_sack").strip() == "1"
    for family, networks in (("-4", {"default", "10.99.1.0/30"}), ("-6", {"default", "fd99::1:0/126"})):
        lines = output(runtime, capfd, "left", "ip", family, "route", "show").splitlines()
        told = {line.split()[0] for line in lines if "window 17520" in line and "quickack 1" in line}
        assert told == networks and len(lines) == len(networks)
        assert "window" not in output(runtime, capfd, "right", "ip", family, "route", "show")
        assert "1 received" in output(runtime, capfd, "left", "ping", family, "-c1", "-W2", "right")
    runtime.down(LAB)
    assert before == {name: TCP.joinpath(name).read_text() for name in before}


def test_exec_gives_the_commands_status_and_nearest_names(
    runtime: NetnsRuntime, capfd: pytest.CaptureFixture[str]
) -> None:
    runtime.up(small(LAB))
    assert runtime.exec(LAB, "left", ["sh", "-c", "exit 7"]) == 7
    assert runtime.exec(LAB, "left", ["sh", "-c", "kill -9 $$"]) == 128 + signal.SIGKILL
    assert output(runtime, capfd, "left", "ls", "/sys/class/net").split() == ["eth0", "lo"]
    assert runtime.exec(LAB, "lefl", ["true"]) == 2
    assert f"lab {LAB} has no node lefl: nearest are left" in capfd.readouterr().err
    runtime.down(LAB)


def test_who_ends_exec_ends_the_command(runtime: NetnsRuntime) -> None:
    runtime.up(small(LAB))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert runtime.exec(LAB, "left", ["sleep", "600"]) == 128 + signal.SIGTERM
    runtime.down(LAB)


def test_ip_netns_can_use_the_nodes(runtime: NetnsRuntime) -> None:
    runtime.up(small(LAB))
    pinged = run("ip", "netns", "exec", f"ewan-{LAB}-left", "ping", "-c1", "-W2", "right")
    assert pinged.returncode == 0, pinged.stderr
    runtime.down(LAB)


def test_down_ends_what_runs_in_the_nodes_and_the_labs_own_spinners(runtime: NetnsRuntime, tmp_path: Path) -> None:
    runtime.up(small(LAB))
    identity = runtime.load(LAB).manifest.id
    command = [str(BINARY), "exec", "--state", f"{runtime._state.root}/{LAB}", "left", "--", "sleep", "600"]
    inside = subprocess.Popen(command)
    ours = spinner_like(identity, tmp_path)
    other = spinner_like("0123456789abcdef", tmp_path)
    stubborn = subprocess.Popen([*command[:-2], "sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
    time.sleep(0.3)
    assert inside.pid in next(node.pids for node in runtime.status(LAB).nodes if node.name == "left")
    removed = runtime.down(LAB)
    assert {inside.pid, ours.pid, stubborn.pid} <= {process.pid for process in removed.processes}
    assert inside.wait(5) == -signal.SIGTERM
    assert ours.wait(5) == -signal.SIGTERM
    assert stubborn.wait(5) == -signal.SIGKILL
    assert other.poll() is None, "another lab's spinner lives"
    other.kill()
    other.wait()


def spinner_like(identity: str, place: Path) -> subprocess.Popen[bytes]:
    """`… link --id ID`, by whatever name."""
    (place / "link").write_text("import time; time.sleep(600)")
    return subprocess.Popen(["spinner", "link", "--id", identity], executable=sys.executable, cwd=place)


def test_a_stale_lab_is_refused_and_the_remedy_said(runtime: NetnsRuntime, state: Path) -> None:
    runtime.up(small(LAB))
    with pytest.raises(LabError, match=f"ewan down {LAB}"):
        runtime.up(small(LAB))
    plan = to_json(small(LAB))
    again = run(str(BINARY), "apply", "--plan", "/dev/stdin", "--state", str(state / LAB), text=plan)
    assert (again.returncode, again.stdout) == (2, b"")
    assert f"ewan down {LAB}" in one_line(again)
    elsewhere = run(str(BINARY), "apply", "--plan", "/dev/stdin", "--state", str(state / "other"), text=plan)
    assert elsewhere.returncode == 2
    assert f"namespace ewan-{LAB}-left exists already" in one_line(elsewhere)
    assert runtime.status(LAB).state == "complete", "the lab that was there is untouched"
    runtime.down(LAB)


def one_line(result: subprocess.CompletedProcess[bytes]) -> str:
    (line,) = result.stderr.decode().splitlines()
    return line


def test_down_is_idempotent(runtime: NetnsRuntime, state: Path) -> None:
    runtime.up(small(LAB))
    assert runtime.down(LAB).lab == LAB
    assert runtime.down(LAB).lab is None
    assert run(str(BINARY), "down", "--state", str(state / LAB)).returncode == 0


def test_two_labs_side_by_side_and_foreign_namespaces_do_not_meet(
    runtime: NetnsRuntime, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    foreign, veth = f"ewan-{LAB}x-left", f"v{os.getpid()}"
    for command in (
        ["ip", "netns", "add", foreign],
        ["ip", "link", "add", veth, "type", "veth", "peer", "name", f"{veth}p"],
    ):
        assert run(*command).returncode == 0
    try:
        other = f"{LAB}-left"  # its namespaces' names start as the first one's do
        runtime.up(small(LAB))
        runtime.up(small(other))
        assert runtime.names() == sorted([LAB, other])
        runtime.down(LAB)
        assert runtime.status(other).state == "complete"
        assert runtime.exec(other, "left", ["ping", "-c1", "-W2", "right"]) == 0
        runtime.down(other)
        assert traces(other, state) == []
        assert Path("/run/netns", foreign).exists()
        assert run("ip", "netns", "exec", foreign, "true").returncode == 0
        assert {veth, f"{veth}p"} <= links_of_host()
    finally:
        run("ip", "netns", "del", foreign)
        run("ip", "link", "del", veth)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a route to nowhere": ({"routes": "left"}, "left: route to 0.0.0.0/0"),
    "a sysctl's value": ({"sysctls": {"net/ipv4/tcp_rmem": "many"}}, "node left: sysctl net/ipv4/tcp_rmem"),
    "a sysctl of the host": ({"sysctls": {"kernel/panic": "1"}}, "is the host's"),
    "a wire that is missing": ({"wires": ()}, "left:eth0: no wire"),
    "a sysctl that must be there": ({"sysctls": {"net/ipv4/ip_forward": "x"}}, "net/ipv4/ip_forward"),
}


@pytest.mark.parametrize(("change", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_a_plan_that_cannot_be_made_leaves_nothing(
    runtime: NetnsRuntime, state: Path, change: dict[str, Any], says: str
) -> None:
    plan = small(LAB)
    if "sysctls" in change:
        plan = small(LAB, sysctls=change["sysctls"])
    elif "wires" in change:
        plan = replace(plan, wires=())
    else:
        left = plan.nodes[0]
        wrong = replace(left, routes=(replace(left.routes[0], via="127.0.0.1"),))
        plan = replace(plan, nodes=(wrong, *plan.nodes[1:]))
    with pytest.raises(LabError, match=says) as refused:
        runtime.up(plan)
    assert "\n" not in str(refused.value)
    assert traces(LAB, state) == []
    assert not state.exists()


def test_a_sysctl_that_this_kernel_lacks_is_a_warning(runtime: NetnsRuntime) -> None:
    runtime.up(small(LAB, sysctls={"net/ipv4/no_such_thing": "1"}))
    assert runtime.status(LAB).warnings == ("this kernel has no sysctl net/ipv4/no_such_thing in a network namespace",)
    runtime.down(LAB)


def test_a_spinner_without_a_cpu_is_refused_before_anything_is_made(runtime: NetnsRuntime, state: Path) -> None:
    with pytest.raises(LabError, match=r"no CPU to spin on: .* CPU 4095"):
        runtime.up(small(LAB, (Spinner(4095, ()),)))
    assert not state.exists()


def test_a_spinner_that_ends_at_once_takes_the_lab_with_it(runtime: NetnsRuntime, state: Path) -> None:
    spinner = Spinner(max(os.sched_getaffinity(0)), ("nowhere",))
    with pytest.raises(LabError, match=r"ended at once: .*spinners\[0\]\.links: the plan has no link nowhere"):
        runtime.up(small(LAB, (spinner,)))
    assert traces(LAB, state) == []


def test_two_ups_of_one_name_do_not_both_proceed(runtime: NetnsRuntime, state: Path) -> None:
    results: list[str] = []

    def up() -> None:
        try:
            runtime.up(small(LAB))
            results.append("up")
        except LabError as error:
            results.append(str(error))

    threads = [threading.Thread(target=up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("up") == 1
    assert sum(f"ewan down {LAB}" in said for said in results) == 3
    assert runtime.status(LAB).state == "complete"
    runtime.down(LAB)


def test_half_made_namespaces_are_removed(runtime: NetnsRuntime, state: Path) -> None:
    """A file without a namespace on it, as left by whoever dies between the two steps."""
    runtime.up(small(LAB))
    path = f"/run/netns/ewan-{LAB}-left"
    assert run("umount", path).returncode == 0
    status = runtime.status(LAB)
    assert status.state == "incomplete"
    assert "ewan down" in status.note
    assert runtime.exec(LAB, "left", ["true"]) == 2
    runtime.down(LAB)
    assert traces(LAB, state) == []
