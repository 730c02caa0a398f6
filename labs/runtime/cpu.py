"""CPUs for runs of the virtual clock: one each, and none on which a live lab's links spin.

The virtual kernel and the programs in it are processes that run one at a time. A switch between two of them costs half
as much on one CPU as across two. A spinning link of a live lab leaves almost nothing of its CPU to others, also while
its lab idles.

In: the CPUs that this process may use, and /proc, which shows the spinners of all users' labs. Out: a CPU that no other
run holds, whichever user started that run. A run holds a CPU by binding a name in the abstract namespace of Unix
sockets: the kernel frees it however the run ends, and nothing is written to disk.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from labs.runtime import spinners

PROC = Path("/proc")
THREAD = "spinner"
"""The thread of `ewan-node link` that spins; it runs on one CPU alone."""


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


def spinning(proc: Path = PROC) -> set[int]:
    """The CPUs on which links of live labs spin."""
    found: set[int] = set()
    for entry in proc.iterdir():
        if not entry.name.isdigit() or spinners.number_of(int(entry.name), proc=proc) is None:
            continue
        with contextlib.suppress(OSError):  # a process that ends meanwhile spins no more
            for task in (entry / "task").iterdir():
                if (task / "comm").read_text().strip() == THREAD:
                    found |= _allowed(task / "status")
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


def _allowed(status: Path) -> set[int]:
    """`Cpus_allowed_list:	1,4-6` of a task."""
    cpus: set[int] = set()
    for line in status.read_text().splitlines():
        key, _, ranges = line.partition(":")
        if key == "Cpus_allowed_list":
            for each in ranges.strip().split(","):
                first, _, last = each.partition("-")
                cpus |= set(range(int(first), int(last or first) + 1))
    return cpus
