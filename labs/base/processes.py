"""Processes that work for this one: how many there may be, and how each begins and ends.

In: nothing. Out: a process that ends with the one that it works for, and that has one CPU. Where and on what it works
is for whoever starts it.
"""

from __future__ import annotations

import multiprocessing
import os
import threading

from ewan.labs.base import interrupt


def cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def begin() -> None:
    """A worker ends with Ctrl-C, without words, and with the process that it works for. Each has a CPU."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    interrupt.begin()
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
