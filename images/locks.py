"""The lock of a build, on a file that other users cannot open: whoever can open a file can hold its lock."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path
from typing import IO


def hold(path: Path, waits: Callable[[], None] = lambda: None) -> IO[str]:
    """Holds this file, whose directory is made, until it is closed; `waits` is called before another's end is waited
    for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waits()
        fcntl.flock(file, fcntl.LOCK_EX)
    return file
