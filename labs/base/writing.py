"""Files that are there whole or not at all, whatever happens while they are written.

In: a path, contents. Out: the file in place of an older one, in one step; an OSError where it cannot be written, and
then nothing of it is left.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

from ewan.labs.base import interrupt, ownership

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of errors of a disk that is full."""
DENIED = (errno.EROFS, errno.EACCES, errno.EPERM)
"""Those of a disk or a file that may not be written."""


def write(path: Path, content: bytes | str) -> None:
    """OSError where there is no room, no such directory, or no permission; `path` is then what it was before."""
    data = content.encode() if isinstance(content, str) else content
    new = beside(path)
    with interrupt.deferred():
        try:
            with anew(new) as file:
                file.write(data)
            new.replace(path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            with suppress(OSError):  # where nothing can be written nothing can be removed either
                new.unlink(missing_ok=True)


def write_new(path: Path, content: bytes) -> None:
    """A file that was not there; FileExistsError where it was, another OSError where it cannot be written: then nothing
    of it is left."""
    with interrupt.deferred(), path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            raise OSError(error.errno, error.strerror, str(path)) from None


def trouble(error: OSError, place: Path, instead: str) -> str:
    """What is said of a file that could not be written, with what to do: make room where there is none, else `instead`.
    `place` is named where the error names no file."""
    path = place if error.filename is None else Path(os.fsdecode(error.filename))
    if error.errno not in FULL:
        return f"{path}: {error.strerror}: {instead}"
    return no_space(path if path.is_dir() else path.parent)


def no_space(folder: Path) -> str:
    """What is said where a folder's disk is full: of bytes, or of the number of files that it can have."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
    found = os.statvfs(there)
    if found.f_files and not found.f_ffree:
        return f"no space left in {folder}: its disk has as many files as it can have, remove some"
    return f"no space left in {folder}: make room there"


def beside(path: Path) -> Path:
    """The path of a new file that is to take the place of `path`. It is another one at each call, so that threads,
    processes and machines that write the same file at once do not meet, and nobody can put something there first."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def write_named(path: Path, content: bytes) -> None:
    """The same for a path that a user says: what is no file, like /dev/stdout, is written to, and a link of one's own
    or root's is followed. What belongs to another user gives way to a file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        found = None
    if found is None or stat.S_ISREG(found.st_mode) or is_of_others(found):
        write(path, content)
    else:
        path.write_bytes(content)


def opened(path: Path) -> IO[bytes]:
    """A file that a user says, empty and open for writing; OSError for a link of another user."""

    def open_it(name: str, flags: int) -> int:
        follows = path.is_symlink() and not is_of_others(path.lstat())
        return os.open(name, flags | (0 if follows else os.O_NOFOLLOW), 0o666)

    return open(path, "wb", opener=open_it)


def make_folder(above: Path, folder: str) -> None:
    """Makes a folder, and those above it, below a directory; OSError where another user's link is one of them."""
    place = above
    place.mkdir(parents=True, exist_ok=True)
    for name in Path(folder).parts:
        place /= name
        if place.is_symlink() and is_of_others(place.lstat()):
            raise OSError(errno.ELOOP, "is a link of another user", str(place))
        place.mkdir(exist_ok=True)


def is_of_others(found: os.stat_result) -> bool:
    """Whether it belongs to a user other than root, this one and, under sudo, the one who called it."""
    return found.st_uid not in ownership.own_users(os.environ)


def anew(path: Path) -> IO[bytes]:
    """An empty file, open for writing, in place of what lies there. It is made, or FileExistsError: a link that another
    user puts there leads nowhere."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def append(path: Path) -> IO[bytes]:
    """A file, open for writing at its end; OSError for a link."""
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666))


def add_line(path: Path, descriptor: int, line: bytes) -> None:
    """Writes a line at the end of `path`, which is open as `descriptor`, and which no other process writes meanwhile.
    After an OSError the file is what it was before."""
    before = os.fstat(descriptor).st_size
    left = line
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(descriptor, before)
        raise OSError(error.errno, error.strerror, str(path)) from None
