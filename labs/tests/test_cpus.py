"""Virtual labs stay off the CPUs on which links of live labs spin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ewan.labs.runtime import cpu, sessions, spinners

SPINNER = ("--state", "/run/ewan/x", "--spinner", "0", "--id", "abc")
# Python takes the first word for a program's path: the processes' programs are called as the subcommands are.
PROGRAM = """
import os, sys, threading
def work(name, cpus):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write(name)
    os.sched_setaffinity(0, cpus)
    begun.wait()
    threading.Event().wait()
name, cpu = os.environ["THREAD"].split()
begun = threading.Barrier(3)
threading.Thread(target=work, args=(name, {int(cpu)})).start()
threading.Thread(target=work, args=("other", os.sched_getaffinity(0))).start()
begun.wait()
print("begun", flush=True)
"""


@contextmanager
def process(place: Path, words: Sequence[str], thread: str) -> Iterator[subprocess.Popen[str]]:
    """One of these words, which has a thread of this name and CPU and another one that may run anywhere."""
    for each in words[1:2]:
        (place / each).write_text(PROGRAM)
    environment = os.environ | {"THREAD": thread}
    with subprocess.Popen(
        words, executable=sys.executable, cwd=place, env=environment, stdout=subprocess.PIPE, text=True
    ) as begun:
        try:
            assert begun.stdout and begun.stdout.readline() == "begun\n"
            yield begun
        finally:
            begun.kill()


def test_the_cpus_of_spinners_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    with (
        process(tmp_path, ("ewan-node", "link", *SPINNER), f"spinner {first}") as link,
        process(tmp_path, ("ewan-node", "link", *SPINNER), f"sleeper {last}") as asleep,
        process(tmp_path, ("spinner", "link"), f"spinner {last}") as other,
        process(tmp_path, ("ewan-node", "traffic", *SPINNER), f"spinner {last}") as traffic,
    ):
        of_link, *others = (psutil.Process(each.pid) for each in (link, asleep, other, traffic))
        monkeypatch.setattr(psutil, "process_iter", lambda: [of_link, *others])
        assert cpu.spinning() == {first}
        assert spinners.number_of(of_link, "abc") == 0
        assert spinners.number_of(of_link, "abd") is None
        link.kill()
        link.wait()
        assert cpu.spinning() == set()
        assert spinners.number_of(of_link) is None


@pytest.mark.parametrize(
    ("spinning", "free", "says"),
    [
        (set(), {0, 1, 2}, ""),
        ({7}, {0, 1, 2}, ""),
        ({1, 7}, {0, 2}, "links of live labs spin on CPU 1: virtual labs keep to CPUs 0, 2"),
        ({0, 1, 2}, {0, 1, 2}, "links of live labs spin on every CPU that is free to this process (CPUs 0, 1, 2): "),
    ],
)
def test_virtual_labs_stay_off_them_and_say_so(
    monkeypatch: pytest.MonkeyPatch, spinning: set[int], free: set[int], says: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(cpu, "spinning", lambda: spinning)
    assert cpu.free() == free
    assert cpu.notice().startswith(says) and bool(says) == bool(cpu.notice())


def test_a_run_has_a_cpu_without_spinners_and_the_next_one_none_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # CPUs that no machine has, so that no run of anybody else's holds them.
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4_000_000, 4_000_001, 4_000_002})
    monkeypatch.setattr(cpu, "spinning", lambda: {4_000_000})
    with cpu.reserved() as first, cpu.reserved() as second, cpu.reserved() as third:
        assert [each.cpus for each in (first, second, third)] == [{4_000_001}, {4_000_002}, {4_000_001, 4_000_002}]


def test_a_run_leaves_a_cpu_on_which_links_begin_to_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    spinning: set[int] = set()
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4_000_010, 4_000_011})
    monkeypatch.setattr(cpu, "spinning", lambda: spinning)
    with cpu.reserved() as run:
        assert run.cpus == {4_000_010} and run.moved() is None and cpu.crowded() == ""
        spinning.add(4_000_010)
        assert run.moved() == {4_000_011} == run.cpus and run.moved() is None
        cpu._looked.cache_clear()  # as in the next second
        with cpu.reserved() as other:
            assert other.cpus == {4_000_011} and other.moved() is None, "it is held already, and shared"
            spinning.clear()
            assert other.moved() == {4_000_010} and run.moved() is None, "each has one of its own again"
        spinning.add(4_000_010)
        spinning.add(4_000_011)
        assert run.moved() is None, "there is no better one"
        assert cpu.crowded() == "held up by live labs, whose links spin on CPUs 4000010, 4000011"
    spinning.clear()
    cpu._looked.cache_clear()
    with cpu.reserved() as first, cpu.reserved() as second:
        assert (first.cpus, second.cpus) == ({4_000_010}, {4_000_011}), "all were given back"


def test_all_threads_of_a_session_are_moved(tmp_path: Path) -> None:
    one = min(os.sched_getaffinity(0))
    script = "sleep 60 & sleep 60 & echo begun; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True) as leader:
        try:
            assert leader.stdout and leader.stdout.readline() == "begun\n"
            pids = [leader.pid, *sessions.members(leader.pid)]
            assert len(pids) == 3
            sessions.move(leader.pid, {one})
            assert all(os.sched_getaffinity(pid) == {one} for pid in pids)
        finally:
            for pid in sessions.members(leader.pid):
                os.kill(pid, 9)
