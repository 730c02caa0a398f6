"""The virtual kernel: its clock, its entropy, what it was built with, and its build. A boot takes a moment."""

import mmap
import os
import shutil
import struct
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.virtual

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build.sh"
OFF = "reboot: Power down"
START = "time-travel-start=1700000000000000000"


@pytest.fixture(scope="session")
def kernel() -> Path:
    built = subprocess.run([BUILD], stdout=subprocess.PIPE, text=True)
    assert built.returncode == 0
    return Path(built.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    (root / "proc").mkdir()
    command = ["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", str(root / "guest"), str(HERE / "guest.c")]
    subprocess.run(command, check=True)
    return root


class Machine:
    def __init__(self, kernel: Path, guest: Path) -> None:
        self.kernel, self.guest = kernel, guest

    def command(self, mode: str, *more: str, root: Path | None = None) -> list[str]:
        init = f"init={self.guest}/guest" if root else "init=/guest"
        files = ["rootfstype=hostfs", f"rootflags={root or self.guest}", "ro", init]
        console = ["con=null", "con0=null,fd:1", "quiet"]
        return [str(self.kernel), "mem=256M", *files, "time-travel=inf-cpu", START, *console, f"MODE={mode}", *more]

    def boot(self, mode: str, *more: str, root: Path | None = None, timeout: float = 300) -> list[str]:
        done = subprocess.run(
            self.command(mode, *more, root=root),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if not line.endswith(OFF)]

    def run(self, *commands: str) -> dict[str, int]:
        """Runs each command in the guest, on the host's tree; its exit status."""
        joined = ";".join(commands).replace(" ", ",")
        lines = self.boot("commands", f"COMMANDS={joined}", root=Path("/"))
        return {command: int(status) for command, status in (line.rsplit(": ", 1) for line in lines if ": " in line)}


@pytest.fixture(scope="session")
def machine(kernel: Path, guest: Path) -> Machine:
    return Machine(kernel, guest)


def value(lines: list[str], name: str) -> str:
    return next(line.removeprefix(name).strip() for line in lines if line.startswith(name))


def test_version_and_clock_resolution(machine: Machine) -> None:
    lines = machine.boot("facts")
    assert value(lines, "release").startswith("6.12.")
    assert "2025" in value(lines, "version")  # not the day of the build
    assert value(lines, "resolution") == "1"


def test_every_tcp_variant_is_there(machine: Machine) -> None:
    wanted = "reno bic cubic westwood htcp highspeed hybla vegas nv scalable lp veno yeah illinois dctcp cdg bbr"
    wanted += " fast ghstcp ghstcp0 hstcp bbr3 prague"
    there = value(machine.boot("facts"), "/proc/sys/net/ipv4/tcp_available_congestion_control:")
    assert set(wanted.split()) <= set(there.split())


def test_every_sleep_ends_on_the_nanosecond(machine: Machine) -> None:
    lines = machine.boot("sleeps")
    assert len(lines) == 24
    assert [line for line in lines if not line.endswith(" late 0")] == []


def test_a_packet_through_netem_takes_exactly_its_delay(machine: Machine) -> None:
    setup = "ip,link,set,lo,up;tc,qdisc,add,dev,lo,root,netem,delay,10ms"
    lines = machine.boot("datagram", f"COMMANDS={setup}", root=Path("/"))
    assert [line for line in lines if line.startswith("late")] == ["late 0"] * 5


def test_clock_reads_are_free_then_dearer_and_dearer(machine: Machine) -> None:
    lines = machine.boot("reads")
    assert int(value(lines, "free")) >= 999
    costs = [int(cost) for cost in value(lines, "costs").split()]
    steps = [costs[i] for i in range(24, 400, 16)]
    assert steps[:4] == [2 * steps[0] // 2, 2 * steps[0], 4 * steps[0], 8 * steps[0]] and costs[1] == 32
    assert max(costs) == 1 << 20  # about 1 ms


def test_a_busy_second_ends_soon(machine: Machine) -> None:
    begin = time.monotonic()
    lines = machine.boot("busy")
    assert int(value(lines, "reads")) < 5000
    assert time.monotonic() - begin < 10


def test_the_cycle_counter_shows_simulated_time(machine: Machine) -> None:
    assert machine.boot("cycles") == ["cycles 1000000 1000000", "over"]


def test_registers_of_floating_point_are_kept(machine: Machine) -> None:
    """Through calls, page faults, signals and forks, in threads and processes that take turns."""
    assert machine.boot("registers") == ["kept"]


CALLS = ["alarms 40 restarted 20 broken 20 children 400", "kernel's address refused", "much memory 2"]


def test_calls_from_one_place_return_to_it(machine: Machine) -> None:
    """Also where a signal interrupts them, between threads and processes; the kernel's own memory is nobody's else."""
    assert machine.boot("calls") == CALLS


@pytest.mark.parametrize("mode", ["calls", "registers", "sleeps", "cycles", "neighbour", "polling-receiver"])
def test_traced_programs_see_the_same(machine: Machine, mode: str) -> None:
    """But for the addresses, which they have for themselves."""
    there = ("COMMANDS=ip,link,set,lo,up",), Path("/")
    more, root = there if mode == "polling-receiver" else ((), None)
    traced = [line.replace("given", "refused") for line in machine.boot(mode, "ewan_programs=traced", *more, root=root)]
    assert traced == machine.boot(mode, *more, root=root)


def test_a_spinning_neighbour_costs_nobody_else_a_nanosecond(machine: Machine) -> None:
    lines = machine.boot("neighbour")
    assert [line for line in lines if line.startswith("late")] == ["late 0"] * 20


LAGS_NS = {"polling-receiver": 1, "spinning-sender": 12_500, "both-spin": 25_000}


@pytest.mark.parametrize(("mode", "lag_ns"), LAGS_NS.items())
def test_programs_that_spin_lose_no_datagram(machine: Machine, mode: str, lag_ns: int) -> None:
    """One comes each 100 us. A spinner's waiting ends late by 1/16 of what it waited for, and it pays for the call that
    shows it the end, too; who else runs is not late, and no socket overflows."""
    lines = machine.boot(mode, "COMMANDS=ip,link,set,lo,up", root=Path("/"))
    assert value(lines, "received") == "150"
    assert int(value(lines, "lag")) <= lag_ns


def test_programs_that_always_receive_from_each_other_move_time(machine: Machine) -> None:
    assert int(value(machine.boot("ping-pong"), "turns")) < 10_000_000


def test_entropy_comes_from_the_seed(machine: Machine) -> None:
    one, same = (machine.boot("entropy", "ewan_seed=7", f"SOMEWHERE=/tmp/{where}") for where in ("here", "elsewhere"))
    other = machine.boot("entropy", "ewan_seed=8", "SOMEWHERE=/tmp/here")
    assert [*one[:2], *one[3:]] == [*same[:2], *same[3:]]
    assert all(one[i] != other[i] for i in (0, 1, 3))


def test_without_a_seed_entropy_is_the_host_s(machine: Machine) -> None:
    assert machine.boot("entropy")[0] != machine.boot("entropy")[0]


def test_a_wrong_seed_is_refused(machine: Machine) -> None:
    done = subprocess.run(machine.command("entropy", "ewan_seed=x"), capture_output=True, text=True)
    assert done.returncode != 0 and "write a number" in done.stderr


def test_two_boots_are_the_same_to_the_byte(machine: Machine) -> None:
    for mode in ("sleeps", "reads", "neighbour"):
        assert machine.boot(mode, "ewan_seed=1") == machine.boot(mode, "ewan_seed=1")


QDISCS = {
    "netem": "delay 1ms loss 1%",
    "tbf": "rate 1mbit burst 1540 limit 3000",
    "fq": "",
    "fq_codel": "",
    "codel": "",
    "red": "limit 100000 min 10000 max 30000 avpkt 1000 burst 20 bandwidth 10mbit",
    "pie": "",
    "fq_pie": "",
    "cake": "",
    "htb": "",
    "prio": "",
    "sfq": "",
    "bfifo": "limit 10000",
    "pfifo": "limit 10",
}


def test_every_queueing_discipline_is_there(machine: Machine) -> None:
    assert shutil.which("tc"), "tc is missing: apt install iproute2"
    wanted = ["ip link set lo up"]
    wanted += [f"tc qdisc replace dev lo root {kind} {options}".strip() for kind, options in QDISCS.items()]
    wanted += [
        "tc qdisc add dev lo ingress",
        "tc filter add dev lo ingress matchall action mirred egress redirect dev lo",
        "tc filter add dev lo ingress protocol ip u32 match u32 0 0 action drop",
    ]
    assert {command: status for command, status in machine.run(*wanted).items() if status} == {}


def test_every_kind_of_device_is_there(machine: Machine) -> None:
    kinds = ("veth", "bridge", "ifb", "dummy", "vlan link lo id 5", "vrf table 5")
    wanted = [f"ip link add x{i} type {kind}" for i, kind in enumerate(kinds)]
    if shutil.which("tc"):
        wanted = [w.replace("x4 type vlan link lo id", "link x0 name x4 type vlan id") for w in wanted]
    assert {command: status for command, status in machine.run(*wanted).items() if status} == {}


def test_the_configuration_has_what_is_promised(kernel: Path) -> None:
    options = "OPENVSWITCH MPTCP INET_DIAG INET_TCP_DIAG PACKET NF_TABLES NF_CONNTRACK IPV6 MPLS_ROUTING NET_SCH_PSP"
    config = (kernel.parent / "config").read_text()
    assert [name for name in options.split() if f"\nCONFIG_{name}=y\n" not in config] == []


def test_the_profile_is_of_the_compiled_parts() -> None:
    with tarfile.open(HERE.parent / "profile.tar.xz") as archive:
        for member in archive:
            counts = archive.extractfile(member)
            assert counts is not None and counts.read(4) == b"adcg", f"{member.name}: gcov's counts"
            assert member.name.startswith(("drivers/net/", "kernel/", "lib/", "mm/", "net/")), member.name


@pytest.fixture
def page(tmp_path: Path) -> Iterator[mmap.mmap]:
    path = tmp_path / "progress"
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        yield memory


def test_progress_is_seen_and_the_stop_flag_ends_the_run(machine: Machine, page: mmap.mmap, tmp_path: Path) -> None:
    command = machine.command("idle", f"ewan_progress={tmp_path}/progress", "ewan_seed=1")
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as running:
        try:
            seen = []
            for _ in range(2):
                time.sleep(0.7)
                seen.append(struct.unpack_from("<QQQII16sQ", page))
            assert seen[0][0] == 0x4557414E50524F47
            assert seen[1][1] > seen[0][1] > 10**9
            assert any(comm.split(b"\0")[0] in (b"guest", b"swapper") for *_, comm, _ in seen)
            struct.pack_into("<I", page, 28, 1)
            assert running.communicate(timeout=10)[0].splitlines()[0] == "stopped"
        finally:
            running.kill()


def test_nothing_is_left_in_the_home_directory(machine: Machine, tmp_path: Path) -> None:
    subprocess.run(machine.command("facts"), env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "tunables",
    [
        pytest.param(":".join(["glibc.malloc.check=0"] * 40), id="840 bytes"),
        pytest.param("no tunable", id="not readable"),
        pytest.param("glibc.pthread.rseq=0", id="as wanted"),
        pytest.param("glibc.pthread.rseq=01", id="begins as wanted"),
    ],
)
def test_it_starts_again_no_more_than_once(kernel: Path, tunables: str) -> None:
    """It does so to have the C library's tunables and the host's addresses as it needs them."""
    done = subprocess.run(
        [kernel, "--version"],
        env={**os.environ, "GLIBC_TUNABLES": tunables},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.returncode, done.stdout[:4], done.stderr) == (0, "6.12", "")


def test_a_failing_build_leaves_the_old_kernel(kernel: Path, tmp_path: Path) -> None:
    change = "--- a/init/main.c\n+++ b/init/main.c\n@@ -1 +1 @@\n-no such line\n+x\n"
    (tmp_path / "0001-broken.patch").write_text(change)
    broken = subprocess.run([BUILD, "--patches", tmp_path], capture_output=True, text=True)
    assert broken.returncode == 2
    assert broken.stderr.splitlines()[-1].startswith("kernel: 0001-broken.patch does not apply: see ")
    path = subprocess.run([BUILD, "--last"], capture_output=True, text=True, check=True).stdout.strip()
    assert Path(path) == kernel and kernel.exists()
    assert subprocess.run([kernel, "--version"], capture_output=True, text=True, check=True).stdout.startswith("6.12")


def test_path_says_when_there_is_no_kernel(tmp_path: Path) -> None:
    done = subprocess.run([BUILD, "--path", "--target", tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
