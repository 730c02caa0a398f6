"""The virtual clock, in its own kernel (built on demand): what runs in it, what it refuses, what it leaves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.runtime import guests, kernel, memory_homes, virtual
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.cpu_shares import Share
from ewan.labs.runtime.program import Command, Preparation, Program
from ewan.labs.runtime.run_directory import kernel_files_of, occupied, remove_killed, root_of
from ewan.labs.runtime.sweep import sweep
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import Run, VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

MINUTE = 60 * NS_PER_SECOND
# 84 bytes of IP and 38 of Ethernet that count in wire framing, there and back: at 100 Mbit/s, and at the hosts' rate.
PING_NS = 2 * 122 * 80 + 2 * 98


@pytest.fixture(scope="session")
def image() -> Path:
    return kernel.kernel(print)


@pytest.fixture
def runtime(image: Path) -> VirtualRuntime:
    return VirtualRuntime(BINARY, image)


def lab(**overrides: str) -> Plan:
    settings = {"rtt": "100ms", "rate": "100M", "dither": "0", "ip": "4", **overrides}
    return compile(from_template("dumbbell", settings), host.virtual_facts())


def do(*commands: Command, longest_ns: int = MINUTE) -> Program:
    return Program(commands=commands, longest_ns=longest_ns)


def ping(count: int = 3) -> Command:
    return Command("left1", ("ping", "-D", "-c", str(count), "right1"))


def shell(node: str, script: str, at_ns: int = 0, service: bool = False) -> Command:
    return Command(node, ("sh", "-c", script), at_ns, service)


def output(run: Run, number: int, node: str) -> str:
    return (run.directory / f"commands/{number}-{node}.out").read_text()


def files(directory: Path) -> dict[str, bytes]:
    """What a run left, but for what tells of the machine."""
    found = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name not in ("wall.json", "console.log")}


def kernels() -> list[int]:
    """Virtual kernels that this process started and that are still there."""
    found = subprocess.run(["ps", "-wwo", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "time-travel" in line]


def test_a_ping_takes_the_delay_and_the_serialisation_to_the_microsecond(
    runtime: VirtualRuntime, tmp_path: Path
) -> None:
    run = runtime.run(lab(), do(ping()), tmp_path / "run")
    times = re.findall(r"time=([\d.]+) ms", output(run, 1, "left1"))
    assert times == ["100"] * 3
    statistics = re.search(r"rtt min/avg/max/mdev = ([\d.]+)/[\d.]+/([\d.]+)/", output(run, 1, "left1"))
    assert statistics is not None
    # ping itself reads whole µs at both ends.
    late_us = {round(float(text) * 1000) - 100_000 for text in statistics.groups()}
    assert late_us <= {PING_NS // 1000, PING_NS // 1000 + 1}
    entry = (run.document("commands.json") or {})["commands"][0]
    assert entry["status"] == 0
    assert entry["ended_ns"] == pytest.approx(2102 * NS_PER_MS, abs=5 * NS_PER_MS)


def test_commands_start_at_their_times_and_services_end_with_them(runtime: VirtualRuntime, tmp_path: Path) -> None:
    program = do(
        shell("left1", "sleep 2; exit 3", at_ns=NS_PER_SECOND),
        shell("right1", "trap 'echo bye; exit' TERM; while :; do sleep 1000 & wait $!; done", service=True),
        Command("r1", ("no-such-program",)),
    )
    run = runtime.run(lab(), program, tmp_path / "run")
    late, service, absent = (run.document("commands.json") or {})["commands"]
    assert late["started_ns"] == pytest.approx(NS_PER_SECOND, abs=1000)
    assert late["ended_ns"] == pytest.approx(3 * NS_PER_SECOND, abs=NS_PER_MS)
    assert late["status"] == 3
    assert service["stopped"] and output(run, 2, "right1") == "bye\n"
    assert absent["error"] == "no-such-program: there is no such program" and absent["started_ns"] is None


def test_preparations_are_over_before_anything_else_and_must_succeed(runtime: VirtualRuntime, tmp_path: Path) -> None:
    step = Preparation("left1", ("sh", "-c", "sleep 1; ip link set eth0 mtu 1400; echo done"))
    program = Program(commands=(shell("left1", "cat /sys/class/net/eth0/mtu"),), longest_ns=MINUTE, prepare=(step,))
    run = runtime.run(lab(), program, tmp_path / "run")
    assert output(run, 1, "left1") == "1400\n"
    assert (run.directory / "commands/prepare-1-left1.out").read_text() == "done\n"
    for argv, says in (
        (("sh", "-c", "echo first >&2; echo no such thing >&2; exit 3"), "preparing left1: sh .*: no such thing$"),
        (("no-such-program",), "no-such-program: there is no such program"),
    ):
        wrong = Program(
            commands=(shell("left1", "echo ran"),), longest_ns=MINUTE, prepare=(Preparation("left1", argv),)
        )
        with pytest.raises(LabError, match=says):
            runtime.run(lab(), wrong, tmp_path / argv[0])
        assert not (tmp_path / argv[0] / "commands/1-left1.out").exists(), "nothing else was run"


def test_what_still_runs_at_the_end_of_time_is_ended(runtime: VirtualRuntime, tmp_path: Path) -> None:
    program = do(shell("left1", "trap '' TERM; sleep 100000"), longest_ns=3600 * NS_PER_SECOND)
    run = runtime.run(lab(), program, tmp_path / "run")
    (entry,) = (run.document("commands.json") or {})["commands"]
    assert entry["stopped"] and entry["signal"] == "SIGKILL"
    assert entry["ended_ns"] == pytest.approx(3601 * NS_PER_SECOND, abs=NS_PER_MS)
    assert run.cost.wall_ns < 10 * NS_PER_SECOND


def test_the_same_plan_and_program_give_the_same_bytes(runtime: VirtualRuntime, tmp_path: Path) -> None:
    program = do(ping(20), shell("right1", "od -An -tx8 -N16 /dev/urandom; date +%s.%N; echo $$"))
    left = files(runtime.run(lab(loss="10%"), program, tmp_path / "a").directory)
    right = files(runtime.run(lab(loss="10%"), program, tmp_path / "b").directory)
    assert left == right
    other = files(runtime.run(lab(loss="10%", seed="7"), program, tmp_path / "c").directory)
    for name in ("commands/1-left1.out", "commands/2-right1.out"):
        assert other[name] != left[name]


def test_commands_see_the_host_read_only_and_write_to_the_run(runtime: VirtualRuntime, tmp_path: Path) -> None:
    script = "touch /etc/ewan-was-here; cat /etc/hosts | grep right1; ls /sys/class/net; echo kept > $EWAN_OUT/file"
    run = runtime.run(lab(), do(shell("left1", script)), tmp_path / "run")
    assert not Path("/etc/ewan-was-here").exists()
    assert output(run, 1, "left1").split()[1:] == ["right1", "eth0", "lo"]
    assert "Read-only file system" in (run.directory / "commands/1-left1.err").read_text()
    assert (run.directory / "commands/1-left1/file").read_text() == "kept\n"


EVERY_CONTROL = """
import os, socket
names = open("/proc/sys/net/ipv4/tcp_available_congestion_control").read().split()
for name in names:
    with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as own:
        own.write(name)
os.setresuid(65534, 65534, 65534)
for name in names:
    socket.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
print(*names)
"""


def test_nodes_and_ordinary_users_have_every_congestion_control(runtime: VirtualRuntime, tmp_path: Path) -> None:
    """As what all of a node's sockets take, and by name without CAP_NET_ADMIN."""
    program = do(Command("left1", (sys.executable, "-c", EVERY_CONTROL)))
    said = output(runtime.run(lab(), program, tmp_path / "run"), 1, "left1").split()
    assert {"reno", "cubic", "bic", "highspeed", "scalable", "htcp", "vegas", "bbr", "fast"} <= set(said), said


def test_nothing_but_results_is_left(runtime: VirtualRuntime, tmp_path: Path) -> None:
    home, places = Path.home() / ".uml", f"{guests.PREFIX}{os.getpid()}-*"
    was = home.exists()
    run = runtime.run(lab(), do(ping(1)), tmp_path / "run")
    results = {"plan.json", "program.json", "commands.json", "links.json", "ended.json", "console.log", "commands"}
    assert {path.name for path in run.directory.iterdir()} == results
    assert list(memory_homes.SHARED_MEMORY.glob(places)) == [] and home.exists() == was
    assert not root_of(run.directory).exists()
    assert kernels() == []


def test_links_in_the_directory_of_a_run_lead_nowhere(runtime: VirtualRuntime, tmp_path: Path) -> None:
    place, other = tmp_path / "run", tmp_path / "other"
    place.mkdir()
    other.write_text("root's")
    for name in ("console.log", "plan.json", "program.json"):
        (place / name).symlink_to(other)
    run = runtime.run(lab(), do(ping(1)), place)
    assert not run.interrupted and other.read_text() == "root's"
    assert not any(path.is_symlink() for path in place.rglob("*"))


def test_what_commands_leave_is_nobody_elses_and_has_no_holes(runtime: VirtualRuntime, tmp_path: Path) -> None:
    opened = shell("left1", "echo x > $EWAN_OUT/x; chmod 666 $EWAN_OUT/x; chmod 777 $EWAN_RUN /run/lab $EWAN_OUT")
    run = runtime.run(lab(), do(opened), tmp_path / "run")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (run.directory, *run.directory.rglob("*"))}
    assert modes["x"] == 0o644 and not any(mode & 0o002 for mode in modes.values()), modes
    hollow = shell("left1", "truncate -s 10T $EWAN_OUT/x; truncate -s 10T /proc/self/fd/1")
    with pytest.raises(LabError, match=r"/1-left1(/x|\.out): was removed: of its 11000GB nearly all are holes"):
        runtime.run(lab(), do(hollow), tmp_path / "hollow")
    assert max(path.stat().st_size for path in (tmp_path / "hollow").rglob("*")) < 10**6


ORDINARY = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from ewan.labs import plan as plans
from ewan.labs.runtime.run_directory import kernel_files_of, occupied, remove_killed, root_of
from ewan.labs.runtime.program import Command, Preparation, Program
from ewan.labs.runtime.virtual import VirtualRuntime
binary, image, plan, directory = map(Path, sys.argv[1:])
plan = plans.from_json(plan.read_bytes())
os.chdir(directory)
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
program = Program(commands=(Command("left1", ("ping", "-c", "2", "right1")),), longest_ns=10**10)
run = VirtualRuntime(binary, image).run(plan, program, directory / "run")
print(run.ended.how, run.document("commands.json")["commands"][0]["status"])
"""


def test_an_ordinary_user_needs_no_right_at_all(image: Path) -> None:
    place = Path(f"/tmp/ewan-test-{os.getpid()}")  # pytest's own directories are for one user only
    place.mkdir(mode=0o755)
    try:
        for program, name in ((BINARY, "ewan-node"), (image, "linux")):
            shutil.copy(program, place / name)
        (place / "plan.json").write_bytes(codec.compact(lab()))
        own = place / "own"
        own.mkdir()
        os.chown(own, 65534, 65534)
        arguments = [str(place / name) for name in ("ewan-node", "linux", "plan.json", "own")]
        command = [sys.executable, "-c", ORDINARY, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert result.stdout == "completed 0\n", result.stderr
        assert all(path.stat().st_uid == 65534 for path in own.rglob("*"))
    finally:
        shutil.rmtree(place)


def run_in_thread(call: Callable[[threading.Event], Run]) -> tuple[threading.Event, list[Run], threading.Thread]:
    stop, runs = threading.Event(), list[Run]()
    thread = threading.Thread(target=lambda: runs.append(call(stop)))
    thread.start()
    return stop, runs, thread


def test_what_was_measured_before_an_interruption_is_kept(runtime: VirtualRuntime, tmp_path: Path) -> None:
    program = do(Command("left1", ("ping", "-i", "0.001", "right1")), longest_ns=10**6 * NS_PER_SECOND)
    stop, runs, thread = run_in_thread(lambda stop: runtime.run(lab(), program, tmp_path / "run", stop))
    time.sleep(2)
    stop.set()
    thread.join(20)
    (run,) = runs
    assert run.interrupted and run.ended.how == "interrupted"
    assert "packets transmitted" in output(run, 1, "left1"), "ping got SIGINT and told what it had measured"
    assert (run.document("commands.json") or {})["interrupted"] is True
    assert (run.document("links.json") or {})["links"][0]["out_packets"] > 100


def test_a_program_that_never_waits_is_named(image: Path, tmp_path: Path) -> None:
    program = do(shell("left1", "sleep 1; while :; do :; done"))
    begun = time.monotonic()
    with pytest.raises(LabError, match=r"stood still at 2\.\d+s for \d.* of wall time: task \d+ \(sh\)"):
        VirtualRuntime(BINARY, image, stall_s=2).run(lab(), program, tmp_path / "run")
    assert time.monotonic() - begun < 60
    assert kernels() == []


def test_programs_have_bounds_that_servers_fit_in(runtime: VirtualRuntime, tmp_path: Path) -> None:
    sockets = "import socket; kept = [socket.socket() for _ in range(10_000)]; print(len(kept))"
    memory = "kept = [bytearray(10**7) for _ in range(1000)]"
    program = do(
        Command("left1", ("python3", "-c", sockets)),
        shell("left1", "for i in $(seq 200); do sleep 1 & done; wait; echo 200", NS_PER_SECOND),
        Command("left1", ("python3", "-c", memory), 3 * NS_PER_SECOND),
        Command("left1", ("echo", "after"), 4 * NS_PER_SECOND),
    )
    run = runtime.run(lab(), program, tmp_path / "run")
    assert [output(run, number, "left1").strip() for number in (1, 2, 4)] == ["10000", "200", "after"]
    entries = (run.document("commands.json") or {})["commands"]
    assert entries[2]["signal"] == "SIGKILL", "ten gigabytes are more than the virtual kernel has"


@pytest.mark.parametrize("direction", [[], ["-R"], ["--bidir"]], ids=["forward", "reverse", "both"])
def test_programs_that_spin_while_they_pace_cost_nobody_a_datagram(
    runtime: VirtualRuntime, tmp_path: Path, direction: list[str]
) -> None:
    """UDP of iperf3 at a fifth of the link's rate: the links drop nothing, so nothing is lost."""
    iperf3 = ("iperf3", "-c", "right1", "-u", "-b", "20M", "-l", "1000", "-t", "2", "-J", *direction)
    program = do(Command("right1", ("iperf3", "-s"), service=True), Command("left1", iperf3, NS_PER_SECOND))
    run = runtime.run(lab(rtt="20ms"), program, tmp_path / "run")
    end = orjson.loads(output(run, 2, "left1"))["end"]
    sums = [end[name] for name in ("sum_received", "sum_received_bidir_reverse") if name in end]
    assert sums and [(each["lost_packets"], each["packets"] > 4900) for each in sums] == [(0, True)] * len(sums)


@pytest.mark.parametrize("name", ["with blank", 'with"quote', "x" * 250])
def test_paths_that_a_kernel_command_line_cannot_carry_are_refused(
    runtime: VirtualRuntime, tmp_path: Path, name: str
) -> None:
    with pytest.raises(LabError, match="from another directory"):
        runtime.run(lab(), do(ping()), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_shared_memory_that_is_missing_or_full_is_said(tmp_path: Path) -> None:
    assert "not there or not writable: mount -t tmpfs" in memory_homes.unusable(tmp_path / "absent")


def test_errors_inside_come_out_as_one_line(runtime: VirtualRuntime, tmp_path: Path) -> None:
    program = do(Command("nowhere", ("true",)))
    with pytest.raises(LabError, match="lab dumbbell has no node nowhere: nearest are") as refused:
        runtime.run(lab(), program, tmp_path / "run")
    assert "\n" not in str(refused.value)


def test_a_kernel_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EWAN_KERNEL", "/nowhere/linux")
    with pytest.raises(LabError, match="EWAN_KERNEL=/nowhere/linux: no program there"):
        kernel.kernel(print)


def test_a_sweep_keeps_all_cores_busy_and_gives_results_in_order(
    runtime: VirtualRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ewan.labs.runtime.sweep.cpu", SimpleNamespace(free=lambda: {0, 1}))
    # Other tests' runs, which may be at work now, take no places from it.
    monkeypatch.setattr("ewan.labs.runtime.sweep.Share", lambda: Share(Path(os.devnull)))
    plans = [lab(rtt=f"{rtt}ms") for rtt in (10, 20, 30, 40)]
    most, lock, pairs = [0, 0], threading.Lock(), threading.Barrier(2)

    def job(number: int) -> Callable[[threading.Event], float]:
        def run(stop: threading.Event) -> float:
            with lock:
                most[0] += 1
                most[1] = max(most)
            pairs.wait(60)
            found = runtime.run(plans[number], do(ping(1)), tmp_path / str(number), stop)
            with lock:
                most[0] -= 1
            match = re.search(r"time=([\d.]+) ms", output(found, 1, "left1"))
            assert match is not None
            return round(float(match[1]))

        return run

    assert sweep([job(number) for number in range(4)]) == [10, 20, 30, 40]
    assert most[1] == 2


def test_the_first_error_of_a_sweep_stops_the_rest(runtime: VirtualRuntime, tmp_path: Path) -> None:
    endless = do(Command("left1", ("ping", "-i", "0.01", "right1")), longest_ns=10**6 * NS_PER_SECOND)
    wrong = do(Command("nowhere", ("true",)))

    def job(number: int, program: Program) -> Callable[[threading.Event], Run]:
        return lambda stop: runtime.run(lab(), program, tmp_path / str(number), stop)

    begun = time.monotonic()
    with pytest.raises(LabError, match="no node nowhere"):
        sweep([job(0, endless), job(1, wrong), job(2, endless)], workers=2)
    assert time.monotonic() - begun < 120
    assert kernels() == []


def test_what_a_killed_command_left_is_removed_by_the_next_one_and_what_is_at_work_stays(tmp_path: Path) -> None:
    left = [tmp_path / name for name in ("killed", "removed", "at-work")]
    for directory in left:
        kernel_files_of(directory).mkdir(parents=True)
        (root_of(directory) / "proc").mkdir(parents=True)
    shutil.rmtree(left[1])
    with occupied(left[2]):
        remove_killed(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".at-work.root", "at-work", "killed"]
    assert [kernel_files_of(directory).exists() for directory in left] == [False, False, True]


def test_last_words_are_of_the_consoles_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = tmp_path / "console.log"
    assert virtual._last_words(console) == "the virtual kernel ended without a word"
    console.write_bytes(b"ewan-node: early\n" + b"ab\n" * 100_000 + b"why\nKernel panic: x\nlast\n")
    assert virtual._last_words(console) == "ewan-node: early"
    monkeypatch.setattr(virtual, "MOST_SAID", 1000)
    assert virtual._last_words(console) == "why; Kernel panic: x"


def test_a_command_that_begins_the_kernel_anew_ends_its_run(runtime: VirtualRuntime, tmp_path: Path) -> None:
    reboot = "import ctypes; ctypes.CDLL(None).reboot(0x01234567)"
    with pytest.raises(LabError, match="a command began the virtual kernel anew"):
        runtime.run(lab(), do(Command("left1", (sys.executable, "-c", reboot))), tmp_path / "run")
