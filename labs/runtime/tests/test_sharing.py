"""Users who run labs of the virtual clock at once share the CPUs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ewan.labs.runtime import guests
from ewan.labs.runtime.cpu_shares import Share, SweepClaim, has_room, seen
from ewan.labs.runtime.sweep import sweep

ROOT = Path(__file__).resolve().parents[3]
HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"


def line(name: str) -> str:
    return f"0000000000000000: 00000002 00000000 00000000 0001 01 12345 {name}\n"


def at_work(uid: int, runs: int, first: int = 0, last: int = 1) -> list[SweepClaim]:
    return [SweepClaim("sweep", uid, first, last), *[SweepClaim("run", uid, first, last)] * runs]


def test_names_are_read() -> None:
    text = HEAD + line("@ewan-sweep-1000-0-63-17-0") + line("@ewan-run-1000-0-63-17-1") + line("/run/@ewan-run-1-0-1-2")
    text += line("") + line("@ewan-virtual-cpu-0-0-0") + line("@ewan-run-x-0-1-2-3")
    assert seen(text) == [SweepClaim("sweep", 1000, 0, 63), SweepClaim("run", 1000, 0, 63)]


@pytest.mark.parametrize(
    ("cpus", "others", "room"),
    [
        (2, at_work(1, 2), True),  # alone: a run on each CPU
        (2, at_work(1, 3), False),
        (2, at_work(1, 1) + at_work(2, 1), True),
        (2, at_work(1, 2) + at_work(2, 1), False),
        (64, at_work(1, 32, last=63) + at_work(2, 64, last=63), True),
        (64, at_work(1, 33, last=63) + at_work(2, 64, last=63), False),
        (2, [each for uid in range(1, 31) for each in at_work(uid, 1)], True),
        (2, [each for uid in range(1, 31) for each in at_work(uid, 2)], False),
        (2, at_work(1, 2) + at_work(2, 4, 2, 5), True),  # their CPUs are others
    ],
)
def test_further_runs_leave_room_for_other_users(cpus: int, others: list[SweepClaim], room: bool) -> None:
    assert has_room(1, range(cpus), others) == room


def test_a_sweep_beside_another_users_has_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first run never waits; a further one begins as soon as the other is gone."""
    most = 0
    other = HEAD + line("@ewan-sweep-4242-0-9999-17-0")
    real = Path("/proc/net/unix")
    at_once: set[int] = set()
    lock, alone = threading.Lock(), threading.Event()

    class Both:
        def read_text(self, errors: str) -> str:
            own = "".join(
                f"{each}\n" for each in real.read_text(errors=errors).splitlines() if f"-{os.getpid()}-" in each
            )
            return own if alone.is_set() else other + own

    monkeypatch.setattr("ewan.labs.runtime.cpu_shares.Share.__init__.__defaults__", (Both(), lambda: None))
    monkeypatch.setattr("ewan.labs.runtime.cpu.usable", lambda: {0, 1})

    def job(number: int) -> Callable[[threading.Event], int]:
        def run(stop: threading.Event) -> int:
            nonlocal most
            with lock:
                at_once.add(number)
                most = max(most, len(at_once))
            if number == 6:
                alone.set()
            if number >= 7:  # two of them are at work together, or the test does not end
                together.wait(60)
            with lock:
                at_once.discard(number)
                if number < 6:
                    assert most == 1
            return number

        return run

    together = threading.Barrier(2)
    assert sweep((job(number) for number in range(9)), 2) == list(range(9))
    assert most == 2


def test_a_name_goes_with_its_process() -> None:
    code = (
        "import os, signal, threading\n"
        "from ewan.labs.runtime.cpu_shares import Share\n"
        "with Share().held() as share, share.place(threading.Event(), True):\n"
        "    print(os.getpid(), flush=True)\n"
        "    signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        pid = holder.stdout.readline().strip()
        names = Path("/proc/net/unix")
        assert len([each for each in names.read_text(errors="replace").splitlines() if f"-{pid}-" in each]) == 2
        holder.kill()
        holder.wait()
        assert f"-{pid}-" not in names.read_text(errors="replace")


def test_a_name_that_is_no_text_stops_no_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewan.labs.runtime.cpu_shares.has_room", lambda uid, cpus, others: True)
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(b"\0\xff\xfe-" + str(os.getpid()).encode())
        with Share().place(threading.Event(), False) as there:
            assert there


def test_the_name_of_a_process_may_be_no_text() -> None:
    named = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\xff\\xfe'); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", named]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert guests.touched_bytes(process.pid) > 0
        process.kill()


def test_what_ends_a_sweep_ends_who_waits_for_a_place() -> None:
    ended = threading.Event()
    ended.set()
    with Share().place(ended, False) as there:
        assert not there
