"""Processes that work for this one: how many there may be, the pool of them, and how each begins and ends.

In: how many are wanted. Out: processes that end with the process that they work for, and that have one CPU each. Where
and on what they work is for whoever starts them.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor

from ewan.labs.base import interrupt


def cpus() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def workers(count: int) -> ProcessPoolExecutor:
    """So many processes, each of which starts with the first call for it. They are not forked: the threads of polars
    would not be there. Whoever calls `submit` does so within `interrupt.blocked`, since it may start a process."""
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), begin)


def begin() -> None:
    """A worker ends with Ctrl-C, without words, and with the process that it works for. Each has a CPU."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    interrupt.begin()
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
