"""Fair shares of the CPUs where several users run labs of the virtual clock at once.

A sweep has one run at work always. It begins further ones only while its user has fewer than the CPUs divided by the
users who are at it. So thirty sweeps on two CPUs are thirty runs, between which the kernel shares the CPUs, and not
sixty; and a user who has a large machine without others leaves room for the next user, at the end of the next run.
Memory is shared with the runs.

In: a user, the CPUs that may be used, and the names that sweeps and their runs have bound in the abstract namespace of
Unix sockets, as /proc/net/unix lists them for everybody. Out: a place for a run. The kernel takes a name away however
its process ends, and nothing is written to disk. A name of a user that another one has bound does not count, where the
kernel tells whose sockets are (Linux 5.3).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ewan.labs.runtime import cpu, unix_names

NAMES = Path("/proc/net/unix")
POLL_S = 0.2
Kind = Literal["sweep", "run"]
_NAME = re.compile(r" @(ewan-(sweep|run)-(\d{1,10})-(\d{1,6})-(\d{1,6})-\S*)")
_number = itertools.count()


@dataclass(frozen=True, slots=True)
class SweepClaim:
    """A sweep, or a run of one, of the user `uid`, on CPUs from `first` to `last`."""

    kind: str
    uid: int
    first: int
    last: int


def seen(text: str, owners: Mapping[str, int] | None = None) -> list[SweepClaim]:
    """The claims on this machine, from the text of /proc/net/unix. `owners`: the users of names, None if they are not
    known. Pure."""
    return [
        SweepClaim(kind, int(uid), int(first), int(last))
        for name, kind, uid, first, last in _NAME.findall(text)
        if owners is None or owners.get(name) == int(uid)
    ]


def has_room(uid: int, cpus: Sequence[int], others: Sequence[SweepClaim]) -> bool:
    """Return whether the user may have as many runs as `others` shows for this user, on these CPUs. Pure."""
    near = [each for each in others if each.first <= cpus[-1] and each.last >= cpus[0]]
    users = {uid, *(each.uid for each in near)}
    own = sum(each.kind == "run" and each.uid == uid for each in near)
    return own <= max(-(-len(cpus) // len(users)), 1)


class Share:
    """The share of one sweep, while it lasts."""

    def __init__(self, names: Path = NAMES, owners: Callable[[], Mapping[str, int] | None] = unix_names.owners) -> None:
        self._names = names
        self._owners = owners
        self._uid = os.getuid()
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def held(self) -> Iterator[Share]:
        """The user counts as being at it, also between two runs."""
        with self._bound("sweep", sorted(cpu.free())):
            yield self

    @contextlib.contextmanager
    def place(self, ended: threading.Event, first: bool) -> Iterator[bool]:
        """A place for a run, waited for where it is not the sweep's first; false: `ended` came before it."""
        while not ended.is_set():
            with contextlib.ExitStack() as stack:
                with self._turn:
                    cpus = sorted(cpu.usable())
                    stack.enter_context(self._bound("run", cpus))
                    there = first or has_room(self._uid, cpus, self._seen())
                if there:
                    yield True
                    return
            ended.wait(POLL_S)
        yield False

    def _seen(self) -> list[SweepClaim]:
        return seen(self._names.read_text(errors="replace"), self._owners())  # any user binds any bytes

    def _bound(self, kind: Kind, cpus: Sequence[int]) -> contextlib.closing[socket.socket]:
        name = f"\0ewan-{kind}-{self._uid}-{cpus[0]}-{cpus[-1]}-{os.getpid()}-{next(_number)}"
        held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        held.bind(name)
        return contextlib.closing(held)
