"""CPUs for runs of the virtual clock: one each, and none on which a live lab's links spin.

The virtual kernel and the programs in it are processes that run one at a time. A switch between two of them costs half
as much on one CPU as across two. A link of a live lab leaves almost nothing of its CPU to others while packets are on
their way, and sleeps when its lab idles: who runs beside it would delay the packets that then come.

In: the CPUs that this process may use, and the machine's processes, which show the spinners of all users' labs. Out: a
CPU that no other run holds, whichever user started that run. A run holds a CPU by binding a name in the abstract
namespace of Unix sockets: the kernel frees it however the run ends, and nothing is written to disk.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import time
from collections.abc import Callable, Iterator, Set

import psutil

from labs.runtime import spinners

THREAD = "spinner"
"""The thread of `ewan-node link` that spins; it runs on one CPU alone. One that leaves its CPU to others is named
otherwise (EWAN_SCHED=shared)."""


class Held:
    """The CPU of a run; all usable ones where other runs hold each of them."""

    def __init__(self) -> None:
        self._holder: socket.socket | None = None
        self.cpus = self._take(usable())

    def moved(self) -> set[int] | None:
        """The CPUs to go to, held from then on: where links have begun to spin on this run's, and where one has become
        free for a run that shares. None where it may stay, and where links spin on every CPU.
        """
        now, cpus = free(), self.cpus
        if self._holder is not None and cpus <= now:
            return None
        before, self._holder = self._holder, None
        self.cpus = self._take(now)
        if before is not None:
            before.close()
        return self.cpus if self.cpus != cpus else None

    def release(self) -> None:
        """Others may have it."""
        if self._holder is not None:
            self._holder.close()

    def _take(self, wanted: set[int]) -> set[int]:
        for cpu in sorted(wanted):
            holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                holder.bind(f"\0ewan-virtual-cpu-{cpu}")
            except OSError:
                holder.close()
                continue
            self._holder = holder
            return {cpu}
        return wanted


@contextlib.contextmanager
def reserved() -> Iterator[Held]:
    """The CPU of a run, held while the context lasts."""
    held = Held()
    try:
        yield held
    finally:
        held.release()


def free() -> set[int]:
    """The CPUs of this process on which no link spins; all of them where links spin on each."""
    return _free(spinning())


def usable() -> set[int]:
    """As `free`, of at most a second ago, for those who ask often."""
    return _free(_looked(spinning, int(time.monotonic())))


def _free(taken: Set[int]) -> set[int]:
    own = os.sched_getaffinity(0)
    return own - taken or own


@functools.lru_cache(maxsize=1)
def _looked(look: Callable[[], set[int]], second: int) -> frozenset[int]:
    """Short runs begin many times a second, and a look at all processes takes milliseconds: there is one a second. A
    link that has begun to spin since is found by `Held.moved`."""
    return frozenset(look())


def spinning() -> set[int]:
    """The CPUs on which links of live labs spin."""
    found: set[int] = set()
    for process in psutil.process_iter():
        if spinners.number_of(process) is None:
            continue
        with contextlib.suppress(psutil.Error, OSError):  # a process that ends meanwhile spins no more
            for thread in process.threads():
                if psutil.Process(thread.id).name() == THREAD:
                    found |= os.sched_getaffinity(thread.id)
    return found


def notice() -> str:
    """One line on what spinning links mean for virtual labs here; empty where no link spins."""
    own, taken = os.sched_getaffinity(0), spinning()
    if not own & taken:
        return ""
    if own <= taken:
        return (
            f"links of live labs spin on every CPU that is free to this process ({_words(own)}): beside them virtual "
            "labs may take a hundred times as long: `ewan ps` shows the live labs, `ewan down NAME` removes one"
        )
    return f"links of live labs spin on {_words(own & taken)}: virtual labs keep to {_words(own - taken)}"


def crowded() -> str:
    """A few words where runs have to share their CPUs with spinning links; empty where they need not."""
    own = os.sched_getaffinity(0)
    return f"held up by live labs, whose links spin on {_words(own)}" if own <= spinning() else ""


def _words(cpus: set[int]) -> str:
    return f"CPU{'s' if len(cpus) > 1 else ''} {', '.join(map(str, sorted(cpus)))}"
