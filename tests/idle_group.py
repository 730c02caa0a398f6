"""CPU time that nobody else wants, for a command and all that it starts.

A group of processes with `cpu.idle` (cgroups(7), Linux 5.15 and newer): whoever else wakes up has the CPU at once. The
priority of a process does not do: each session shares the CPU with others as an equal, where the kernel groups sessions
(sched(7), autogroup). In: a kernel whose groups this user may change. Out: the group; None where there cannot be one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NAME = "ewan-tests"
ENDING_S = 5.0
"""Processes that were killed are in their group for a moment."""


@contextlib.contextmanager
def idle_group(root: Path = ROOT) -> Iterator[Path | None]:
    """A new group, which is removed at the end; those of runs that were killed are removed first."""
    place = _hierarchy(root)
    group = None if place is None else _made(place)
    try:
        yield group
    finally:
        deadline = time.monotonic() + ENDING_S
        while group is not None and not _removed(group) and time.monotonic() < deadline:
            time.sleep(0.1)


def inside(group: Path, command: list[str]) -> list[str]:
    """A command that is executed in a group."""
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs"), *command]


def _hierarchy(root: Path) -> Path | None:
    """Where groups for the CPU are: in the second version of groups, where those below the root have it."""
    if (root / "cpu/cgroup.procs").exists():
        return root / "cpu"
    with contextlib.suppress(OSError):
        if "cpu" in (root / "cgroup.subtree_control").read_text().split():
            return root
    return None


def _made(place: Path) -> Path | None:
    for old in place.glob(f"{NAME}-*"):
        if not Path("/proc", old.name.rpartition("-")[2]).exists():
            _removed(old)
    group = place / f"{NAME}-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cpu.idle").write_text("1")
    except OSError:
        _removed(group)
        return None
    return group


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
