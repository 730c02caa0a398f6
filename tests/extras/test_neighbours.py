"""Users of one machine: what another user leaves in common places changes, stops or misleads nothing.

The other users are plain numbers; root becomes one of them in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
import pytest

from ewan.experiments.engine import experiment
from ewan.experiments.store import Store
from ewan.experiments.store.entry import EntryOrigin
from ewan.extras.devices import simulator
from ewan.extras.executors import remote
from ewan.extras.studio.server.jobs import Jobs
from ewan.labs.base import ownership
from ewan.labs.base.product import DEFAULT_ROOT
from ewan.labs.record import experiment as records
from ewan.labs.runtime import cpu, cpu_shares, run_directory, spinners, unix_names
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.live import LiveRuntime
from ewan.labs.runtime.state import LOCK, Owner, State

SUDO = {"SUDO_UID": "61001", "SUDO_GID": "61001"}
CALLER, STRANGER = 61001, 61002


@pytest.fixture(autouse=True)
def root() -> None:
    assert os.geteuid() == 0, "these tests become other users: run them as root"


def become(user: int) -> str:
    """What makes a Python program one of this user; modules are imported before."""
    own = f"os.setresgid({user}, {user}, {user}); os.setresuid({user}, {user}, {user})"
    return f"import os, socket, sys; os.setgroups([]); {own}"


def as_user(user: int, code: str, *arguments: str) -> str:
    """The output of a Python program that runs as this user."""
    command = [sys.executable, "-c", f"{become(user)}\n{code}", *arguments]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    return done.stdout


TRY = """try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    print("yes")
except PermissionError:
    print("no")
"""


def owner(path: Path) -> int:
    return path.lstat().st_uid


def test_a_link_in_results_is_never_followed(tmp_path: Path) -> None:
    mine, directory = tmp_path / "mine", tmp_path / "results" / "x"
    (mine / "inside").mkdir(parents=True)
    (directory / "runs").mkdir(parents=True)
    (directory / "runs" / "out").write_text("")
    (directory / "file").symlink_to(mine)
    (directory / "runs" / "nowhere").symlink_to(tmp_path / "none")
    (directory / "runs" / "folder").symlink_to(mine, target_is_directory=True)
    ownership.give_back_tree(directory, SUDO)
    ownership.give_back([directory / "file", directory / "gone"], SUDO)
    assert owner(directory) == owner(directory / "runs" / "out") == owner(directory / "runs" / "nowhere") == CALLER
    assert owner(mine) == owner(mine / "inside") == 0


@pytest.mark.parametrize(("before", "after"), [(0o000, 0o022), (0o077, 0o077), (0o002, 0o022)])
def test_others_may_never_write_what_root_makes(before: int, after: int) -> None:
    kept = os.umask(before)
    try:
        ownership.restrict_umask()
    finally:
        assert os.umask(kept) == after


@contextmanager
def sleeper(user: int, place: Path, number: str) -> Iterator[psutil.Process]:
    """A process that calls itself a spinner, and has a thread of that name."""
    link = place / "link"
    link.write_text(f"import os, time; os.setresuid({user}, {user}, {user})\nprint(flush=True)\ntime.sleep(60)")
    words = ["ewan-node", "link", "--state", "/run/ewan/x", "--spinner", number, "--id", "abc"]
    with subprocess.Popen(words, executable=sys.executable, cwd=place, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield psutil.Process(process.pid)
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("user", "number", "found"), [(STRANGER, "0", None), (0, "0", 0), (0, "abc", None), (0, "9" * 5000, None)]
)
def test_only_roots_processes_and_ones_own_are_believed_to_spin(
    tmp_path: Path, user: int, number: str, found: int | None
) -> None:
    with sleeper(user, tmp_path, number) as process:
        assert spinners.number_of(process) == found
        assert cpu.spinning() is not None


@pytest.mark.parametrize("squat", ["directory", "link", "open directory"])
def test_a_workers_directory_is_never_one_that_another_user_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squat: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o1777)
    usual, elsewhere = tmp_path / f"ewan-{os.getuid()}", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if squat == "link":
        usual.symlink_to(elsewhere)
    else:
        usual.mkdir(mode=0o777)
    if squat != "open directory":
        os.chown(usual, STRANGER, STRANGER, follow_symlinks=False)
    else:
        usual.chmod(0o777)
    remote.provide([b"kernel"])
    (made,) = [path for path in tmp_path.iterdir() if path not in (usual, elsewhere)]
    assert made.stat().st_mode & 0o777 == 0o700 and not list(elsewhere.iterdir())
    assert remote._sent("x").parent == made / "tools"


def test_what_a_worker_was_sent_is_replaced_where_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remote.provide([b"kernel"])
    (path,) = (tmp_path / f"ewan-{os.getuid()}" / "tools").iterdir()
    path.write_bytes(b"kernem")
    remote.provide([b"kernel"])
    assert path.read_bytes() == b"kernel" and path.stat().st_mode & 0o777 == 0o700


def test_all_means_ones_own_labs(tmp_path: Path) -> None:
    state = State(tmp_path)
    mine, other = Owner(CALLER, "/home/a/ewan"), Owner(CALLER, "/home/b/ewan")
    for name, owner in {"a": mine, "b": other, "c": Owner(STRANGER, "/home/a/ewan"), "d": None}.items():
        (tmp_path / name).mkdir()
        if owner is not None:
            state.own(name, owner)
    labs = LiveRuntime(state=tmp_path, owner=mine)
    assert [name for name, owner in labs.owners().items() if labs.is_own(owner)] == ["a", "d"]
    labs._state.root = DEFAULT_ROOT
    assert not labs.is_own(None), "where all users' labs are, one of nobody is not ours"
    assert Owner.of(SUDO, Path("/home/a/ewan")) == mine


def test_a_strangers_entry_of_a_shared_store_is_none(tmp_path: Path) -> None:
    key, store = "0" * 64, Store(tmp_path / "store")
    left = tmp_path / "left"
    left.write_text("1")
    store.put(key, EntryOrigin("run", "s", "x", "1", "", 1, 1), {"left": left})
    assert store.has(key) and store.take(key, tmp_path / "mine") is not None
    os.chown(store.path(key), STRANGER, STRANGER)
    assert not store.has(key) and store.take(key, tmp_path / "his") is None and store.verify(key) is None
    called = Store(tmp_path / "store", {"SUDO_UID": str(STRANGER), "SUDO_GID": str(STRANGER)})
    assert called.has(key), "who calls sudo believes his own results"


def test_only_its_user_and_root_reach_a_simulated_box() -> None:
    before = os.umask(0)
    try:
        with tempfile.TemporaryDirectory(dir="/tmp") as place, socket.socket(socket.AF_UNIX) as listener:
            box = Path(place) / "box"
            box.parent.chmod(0o755)  # pytest's own directories are for one user only
            listener.bind(str(box))
            simulator._keep_for(box, CALLER)
            listener.listen()
            for user, reached in ((CALLER, "yes"), (STRANGER, "no")):
                assert as_user(user, TRY, str(box)).strip() == reached
    finally:
        os.umask(before)


BIND = """held = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
for each, name in zip(held, sys.argv[1:]):
    each.bind("\\0" + name)
print("bound", flush=True)
sys.stdin.read()
"""


def test_a_name_of_ours_that_a_stranger_bound_takes_no_place_of_ours() -> None:
    names = [f"ewan-run-{user}-0-1-{os.getpid()}-x" for user in (os.getuid(), STRANGER)]
    with (
        subprocess.Popen(
            [sys.executable, "-c", f"{become(STRANGER)}\n{BIND}", names[0]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as stranger,
        socket.socket(socket.AF_UNIX) as held,
    ):
        assert stranger.stdout is not None and stranger.stdout.readline() == b"bound\n"
        held.bind(f"\0{names[0]}-own")
        owners = unix_names.owners()
        assert owners is not None and owners[names[0]] == STRANGER and owners[f"{names[0]}-own"] == os.getuid()
        found = cpu_shares.seen("".join(f"0: @{name}\n" for name in owners), owners)
        assert [each.uid for each in found].count(STRANGER) == 0
        assert len([each for each in found if each == cpu_shares.SweepClaim("run", os.getuid(), 0, 1)]) >= 1
        assert len(cpu_shares.seen(f"0: @{names[0]}\n", owners)) == 0
        stranger.kill()


@contextmanager
def at_work(code: str, *arguments: str, says: bytes) -> Iterator[None]:
    """A program that says that it is ready and then stays, until the context ends."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None and stranger.stdout.readline() == says
        try:
            yield
        finally:
            stranger.kill()


def bound_by_a_stranger(*names: str) -> AbstractContextManager[None]:
    return at_work(f"{become(STRANGER)}\n{BIND}", *names, says=b"bound\n")


def reserve_two_of_two(monkeypatch: pytest.MonkeyPatch, first: int) -> list[set[int]]:
    """CPUs of two runs where there are two, whose numbers no machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {first, first + 1})
    monkeypatch.setattr(cpu, "spinning", set)
    cpu._looked.cache_clear()
    with cpu.reserved() as one, cpu.reserved() as other:
        return [one.cpus, other.cpus]


def test_a_stranger_takes_no_cpu_from_runs_by_names_like_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    first = 4_000_020
    names = [f"ewan-virtual-cpu-{os.getuid()}-{number}-{turn}" for number in (first, first + 1) for turn in range(3)]
    with bound_by_a_stranger(*names):
        assert reserve_two_of_two(monkeypatch, first) == [{first}, {first + 1}]


def test_a_strangers_runs_are_left_alone_while_there_is_another_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    first = 4_000_030
    with bound_by_a_stranger(f"ewan-virtual-cpu-{STRANGER}-{first}-0"):
        assert reserve_two_of_two(monkeypatch, first) == [{first + 1}, {first}]
        with cpu.reserved() as alone, cpu.reserved() as beside:
            assert (alone.moved(), beside.moved()) == (None, None)
            alone.release()
            assert beside.moved() == {first + 1}, "a CPU without anybody's runs has become free"


def test_a_stranger_cannot_lock_the_directory_of_all_labs() -> None:
    with tempfile.TemporaryDirectory(dir="/run", prefix="ewan-test-") as place:
        Path(place).chmod(0o755)
        root = Path(place) / "state"
        lock = "import fcntl"  # the standard library may be one that strangers cannot read
        code = "fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)\nprint(flush=True)\nsys.stdin.read()"
        with State(root).locked():
            pass
        assert not root.exists(), "nothing is left"
        root.mkdir(mode=0o755)
        command = [sys.executable, "-c", f"{lock}; {become(STRANGER)}\n{code}", str(root)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
            assert stranger.stdout is not None and stranger.stdout.readline() == b"\n"
            begun = time.monotonic()
            with State(root).locked():
                assert time.monotonic() - begun < 5
                with pytest.raises(subprocess.CalledProcessError):
                    as_user(STRANGER, "os.open(sys.argv[1], os.O_RDONLY)", str(root / LOCK))
            stranger.kill()
        assert not root.exists()


LOCK_ALL = """import fcntl
found = [path for top in sys.argv[1:] for path in (top, *(os.path.join(top, name) for name in os.listdir(top)))]
for path in found:
    try:
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass
print(flush=True)
sys.stdin.read()
"""


def locked_by_a_stranger(*places: Path) -> AbstractContextManager[None]:
    """Directories and all that is in them, as far as he can open it."""
    return at_work(f"import fcntl; {become(STRANGER)}\n{LOCK_ALL}", *map(str, places), says=b"\n")


@pytest.mark.parametrize("what", ["run", "experiment", "jobs", "left"])
def test_a_stranger_who_can_read_directories_stops_no_run(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(run_directory, "WAIT_S", 0.0)
    with tempfile.TemporaryDirectory(dir="/run", prefix="ewan-test-") as top:
        place = Path(top) / "runs/001"
        place.mkdir(parents=True)
        Path(top).chmod(0o755)
        run_directory.root_of(place).mkdir()
        locks: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
            "run": lambda: run_directory.occupied(place),
            "experiment": lambda: experiment.locked(place),
            "jobs": lambda: Jobs(place, {})._alone(),
            "left": contextlib.nullcontext,
        }
        if what == "jobs":
            (place / ".turn").touch(0o600)  # it stays; an older version made one that all can read
        with locked_by_a_stranger(place, place.parent):
            with locks[what]():
                held = [path for path in Path(top).rglob("*") if path.is_file()]
                for path in held:
                    with pytest.raises(subprocess.CalledProcessError):
                        as_user(STRANGER, "os.open(sys.argv[1], os.O_RDONLY)", str(path))
                assert len(held) == (what != "left")
            run_directory.remove_killed(place.parent)
        assert not run_directory.root_of(place).exists()
        assert [path.name for path in Path(top).rglob("*") if path.is_file()] == ([".turn"] if what == "jobs" else [])


def test_a_lock_of_a_killed_command_is_no_hindrance(tmp_path: Path) -> None:
    place = tmp_path / "runs/001"
    place.mkdir(parents=True)
    for path in (run_directory.lock_of(place), place / records.LOCK):
        path.touch()
    with run_directory.occupied(place), experiment.locked(place), pytest.raises(LabError), experiment.locked(place):
        pass
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
