"""CPUs for runs of the virtual clock: one each, and none on which a live lab's links spin.

The virtual kernel and the programs in it are processes that run one at a time. A switch between two of them costs half
as much on one CPU as across two. A link of a live lab leaves almost nothing of its CPU to others while packets are on
their way, and sleeps when its lab idles: who runs beside it would delay the packets that then come.

In: the CPUs that this process may use, and the machine's processes, which show the spinners of all users' labs. Out: a
CPU that no other run of this user holds, and none of another user where there is such a one. A run holds a CPU by
binding a name in the abstract namespace of Unix sockets: the kernel frees it however the run ends, and nothing is
written to disk. Any user may bind any name, so whose it is counts and not what it says: names of other users are a
wish that is heeded while that costs nothing, and one that says it were ours is passed over. Where the kernel does not
tell whose names are (before Linux 5.3), they are believed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Set

import psutil

from ewan.labs.runtime import spinners, unix_names

THREAD = "spinner"
"""The thread of `ewan-node link` that spins; it runs on one CPU only. One that leaves its CPU to others is named
otherwise (EWAN_SCHED=shared)."""
_NAME = re.compile(r"ewan-virtual-cpu-(\d{1,10})-(\d{1,10})-(\d{1,10})")


class CpuLock:
    """The CPU of a run; all usable ones where other runs hold each of them."""

    def __init__(self) -> None:
        self._holder, self.cpus, self._alone = _take(usable())

    def moved(self) -> set[int] | None:
        """The CPUs to go to, held from then on: where links have begun to spin on this run's, and where one has become
        free for a run that shares. None where it may stay, and where links spin on every CPU.
        """
        now, before = free(), self.cpus
        stays = self._holder is not None and before <= now
        if stays and self._alone:
            return None
        holder, cpus, alone = _take(now)
        if stays and not alone:  # it would share the other one as well
            if holder is not None:
                holder.close()
            return None
        self.release()
        self._holder, self.cpus, self._alone = holder, cpus, alone
        return cpus if cpus != before else None

    def release(self) -> None:
        """Others may have it."""
        if self._holder is not None:
            self._holder.close()


def _take(wanted: set[int]) -> tuple[socket.socket | None, set[int], bool]:
    """The socket that reserves one of these CPUs, that CPU, and whether no other user holds it. If a run of this user
    holds each CPU, it is None and all CPUs."""
    uid = os.getuid()
    owners = unix_names.owners()
    theirs = _held_by_others(owners or {}, uid)
    for cpu in sorted(wanted, key=lambda each: (each in theirs, each)):
        holder = _bound(uid, cpu, owners)
        if holder is not None:
            return holder, {cpu}, cpu not in theirs
    return None, wanted, False


def _held_by_others(owners: Mapping[str, int], uid: int) -> set[int]:
    """CPUs that runs of other users hold. Pure."""
    found = ((_NAME.fullmatch(name), owner) for name, owner in owners.items() if owner != uid)
    return {int(match[2]) for match, owner in found if match is not None and int(match[1]) == owner}


def _bound(uid: int, cpu: int, owners: Mapping[str, int] | None) -> socket.socket | None:
    """The first name of this user's for this CPU that no other user has bound; None where a run of his has one."""
    for turn in itertools.count():
        name = f"ewan-virtual-cpu-{uid}-{cpu}-{turn}"
        if owners is not None and owners.get(name, uid) != uid:
            continue
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            holder.bind(f"\0{name}")
        except OSError:
            holder.close()
            return None
        return holder
    raise AssertionError("counting has no end")


@contextlib.contextmanager
def reserved() -> Iterator[CpuLock]:
    """The CPU of a run, held while the context lasts."""
    held = CpuLock()
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
    link that has begun to spin since is found by `CpuLock.moved`."""
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
