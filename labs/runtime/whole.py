"""Checks that a program of the cache has the bytes that were built: by its SHA-256, which its builder noted beside it.

In: the path of a program. Out: nothing, or LabError if its bytes differ. NAME.sum has SHA-256, size, time of the last
change in ns and inode, in a line. While the latter three are as noted, the bytes count as unchanged; otherwise they are
read. A program without such a file, for example a user's own, is not checked. Each path is checked once in a process.
"""

from __future__ import annotations

import functools
import hashlib
from contextlib import suppress
from pathlib import Path

from ewan.labs.base import writing
from ewan.labs.runtime.base import LabError

ENDING = ".sum"
MOST_BYTES = 4096


@functools.lru_cache(maxsize=64)
def check(path: Path, remedy: str, replaceable: bool = False) -> None:
    """`replaceable`: another file in its place, as a developer's build leaves one, is that developer's."""
    note = path.with_name(path.name + ENDING)
    try:
        with note.open("rb") as file:
            digest, size, changed_ns, inode = file.read(MOST_BYTES).decode().split()
        found = path.stat()
    except (OSError, ValueError):
        return
    if (found.st_size, found.st_mtime_ns) == (int(size), int(changed_ns)) and found.st_ino == int(inode):
        return
    if replaceable and found.st_ino != int(inode):
        return
    if sha256(path) != digest:
        raise LabError(f"{path} is damaged: its bytes are not those that were built: {remedy}")
    with suppress(OSError):  # a cache that is only read
        writing.write(note, line(path, digest))


def sha256(path: Path) -> str:
    """In hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def line(path: Path, digest: str) -> str:
    """The line of NAME.sum for a file that exists."""
    found = path.stat()
    return f"{digest} {found.st_size} {found.st_mtime_ns} {found.st_ino}\n"
