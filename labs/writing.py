"""Files that are there whole or not at all, whatever happens while they are written.

In: a path, contents. Out: the file in place of an older one, in one step; an OSError where it cannot be written, and
then nothing of it is left.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def write(path: Path, content: bytes | str) -> None:
    """OSError where there is no room, no such directory, or no permission; `path` is then what it was before."""
    data = content.encode() if isinstance(content, str) else content
    # A name of its own: two processes that write the same file do not meet, not on two machines either.
    new = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        try:
            with anew(new) as file:
                file.write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def anew(path: Path) -> IO[bytes]:
    """An empty file, open for writing, in place of what lies there. It is made, or FileExistsError: a link that another
    user puts there leads nowhere."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def append(path: Path) -> IO[bytes]:
    """A file, open for writing at its end; OSError for a link."""
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666))
