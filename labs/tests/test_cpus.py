"""Virtual labs stay off the CPUs on which links of live labs spin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from labs.runtime import cpu

LINK = b"/usr/bin/ewan-node\0link\0--state\0/run/ewan/x\0--spinner\0" + b"0\0--id\0abc\0"


def process(proc: Path, pid: int, words: bytes, tasks: Mapping[str, str]) -> None:
    """A process of these words, with tasks: name → CPUs that it may use."""
    for number, (name, cpus) in enumerate(tasks.items()):
        task = proc / f"{pid}/task/{pid + number}"
        task.mkdir(parents=True)
        (task / "comm").write_text(f"{name}\n")
        (task / "status").write_text(f"Name:\t{name}\nCpus_allowed:\tff\nCpus_allowed_list:\t{cpus}\nThreads:\t2\n")
    (proc / f"{pid}/cmdline").write_bytes(words)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, 10, LINK, {"ewan-node": "0,2-3", "spinner": "1"})
    process(tmp_path, 20, LINK, {"ewan-node": "0,2-3", "spinner": "5"})
    process(tmp_path, 30, b"spinner\0link\0", {"spinner": "2"})
    process(tmp_path, 40, b"/usr/bin/ewan-node\0traffic\0", {"spinner": "3"})
    (tmp_path / "self").mkdir()
    return tmp_path


def test_the_cpus_of_all_users_spinners_are_found(proc: Path) -> None:
    assert cpu.spinning(proc) == {1, 5}


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
        assert (first, second, third) == ({4_000_001}, {4_000_002}, {4_000_001, 4_000_002})
