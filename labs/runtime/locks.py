"""Locks on files (flock(2)) that are waited for, but not for ever, and that other users cannot hold.

Whoever can open a file or a directory can lock it, if only to read it: a lock is on a file that only its user can open.
In: the file's path. Out: a descriptor, which children may inherit: the lock ends with the last who has it, and
the file is gone then.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from ewan.labs.runtime.base import LabError

POLL_S = 0.01


def lock(descriptor: int, deadline: float, refusal: str) -> None:
    """Takes the lock exclusively. LabError with `refusal` if another process holds it beyond `deadline` (of
    time.monotonic)."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LabError(refusal) from None
            time.sleep(POLL_S)


def private(path: Path) -> int:
    """A descriptor of a file that only its user can open, of root's the owner of its directory, as who called sudo may
    be; it is made where it is not there. OSError where it cannot be."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
        if os.geteuid() == 0:
            place = path.parent.stat()
            os.fchown(descriptor, place.st_uid, place.st_gid)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def held(path: Path, wait_s: float, refusal: str) -> Iterator[int]:
    """The lock of such a file, as long as the context lasts; gives its descriptor. LabError with `refusal` where
    another process holds it for longer than `wait_s` seconds, OSError where the file cannot be made."""
    deadline = time.monotonic() + wait_s
    descriptor = _taken(path, deadline, refusal)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        clear(path)


def clear(path: Path) -> None:
    """Removes the file of a lock that no process holds."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_there(descriptor, path):
                path.unlink()
        finally:
            os.close(descriptor)


def _taken(path: Path, deadline: float, refusal: str) -> int:
    """A lock on the file that is there, and not on one that its last holder removed meanwhile."""
    while True:
        descriptor = private(path)
        try:
            lock(descriptor, deadline, refusal)
            if is_there(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def is_there(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
