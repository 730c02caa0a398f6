"""The processes of a session, such as a virtual kernel's with the programs in it.

In: the process that began the session. Out: the others; all of them on other CPUs.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil


def members(leader: int) -> list[int]:
    """Processes of the session that `leader` began; its number is nobody else's while one of them is there."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if pid != leader and os.getsid(pid) == leader:
                found.append(pid)
    return found


def move(leader: int, cpus: set[int]) -> None:
    """Moves all threads of a session's processes; what ends meanwhile, and what may not be moved, stays."""
    for pid in (leader, *members(leader)):
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), cpus)
