"""CPUs for runs of the virtual clock: one each, and none on which a live lab's links spin.

The virtual kernel and the programs in it are processes that run one at a time. A switch between two of them costs half
as much on one CPU as across two. A spinning link of a live lab leaves almost nothing of its CPU to others, also while
its lab idles.

In: the CPUs that this process may use, and the machine's processes, which show the spinners of all users' labs. Out: a
CPU that no other run holds, whichever user started that run. A run holds a CPU by binding a name in the abstract
namespace of Unix sockets: the kernel frees it however the run ends, and nothing is written to disk.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

import psutil

from labs.runtime import spinners

THREAD = "spinner"
"""The thread of `ewan-node link` that spins; it runs on one CPU alone. One that leaves its CPU to others is named
otherwise (EWAN_SCHED=shared)."""


@contextlib.contextmanager
def reserved() -> Iterator[set[int]]:
    """The CPU of a run, held while the context lasts; all usable CPUs where other runs hold each of them."""
    usable = free()
    for cpu in sorted(usable):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
            try:
                holder.bind(f"\0ewan-virtual-cpu-{cpu}")
            except OSError:
                continue
            yield {cpu}
            return
    yield usable


def free() -> set[int]:
    """The CPUs of this process on which no link spins; all of them where links spin on each."""
    own = os.sched_getaffinity(0)
    return own - spinning() or own


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


def _words(cpus: set[int]) -> str:
    return f"CPU{'s' if len(cpus) > 1 else ''} {', '.join(map(str, sorted(cpus)))}"
