"""The processes that one began: those of its session and its descendants, such as a virtual kernel and its programs.

In: the process that began the session. Out: the others; all of them on other CPUs; the CPU time that they had.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from ewan.labs.base.units import NS_PER_SECOND


def members(leader: int) -> list[int]:
    """Processes of the session that `leader` began, whose number no other session has while one of them is there, and
    its descendants: behind the wall the virtual kernel begins a session of its own."""
    found = set()
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader:
                found.add(pid)
    with contextlib.suppress(psutil.Error):
        found |= {each.pid for each in psutil.Process(leader).children(recursive=True)}
    return sorted(found - {leader})


def cpu_ns(leader: int) -> int:
    """CPU time that these processes have had, with that of their children that have ended."""
    had_s = 0.0
    for pid in (leader, *members(leader)):
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            had_s += times.user + times.system + times.children_user + times.children_system
    return round(had_s * NS_PER_SECOND)


def move(leader: int, cpus: set[int]) -> None:
    """Moves all threads of these processes; what ends meanwhile, and what may not be moved, stays."""
    for pid in (leader, *members(leader)):
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), cpus)
