"""The cache of compiled modules, of BPF programs and of the headers for both: unused entries are removed.

In: the folder, the time. Out: of each kind of entry those that were used last. An entry that was used within a day is
never removed: the process that used it may need it still. Entries are looked up under a shared lock, and removed under
an exclusive one, which is not waited for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

LOCK = ".lock"
NEEDED_S = 86_400.0
"""An entry is in use for so long after it was looked up."""
KEPT = {"headers-*": 3, "btf-*": 3, "[0-9a-f]*": 512, ".build-*": 0, ".headers-*": 0}
"""The number of entries that stay, by their names; headers take 51 MB a kernel. A process that was killed leaves those
that begin with a dot."""


@contextlib.contextmanager
def looking(place: Path) -> Iterator[None]:
    """While the block runs nothing is removed."""
    with _lock(place) as file:
        if file is not None:
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


def used(*paths: Path) -> None:
    """Notes that entries are used now; where they are another user's, nothing is noted."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.utime(path)


def prune(place: Path, now: float | None = None) -> None:
    """Removes what has not been used for long. Where another process looks something up, nothing happens."""
    oldest = (time.time() if now is None else now) - NEEDED_S
    with _lock(place) as file:
        if file is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for names, kept in KEPT.items():
            entries = sorted(((path.lstat().st_mtime, path) for path in place.glob(names)), reverse=True)
            for last_use, path in entries[kept:]:
                if last_use < oldest:
                    _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def _lock(place: Path) -> Iterator[int | None]:
    """The open lock; None where this user may not open it, who removes nothing then."""
    try:
        descriptor = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield None
        return
    try:
        if os.geteuid() == 0:  # under sudo the folder is the user's who called it
            owner = place.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        yield descriptor
    finally:
        os.close(descriptor)
