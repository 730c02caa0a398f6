"""Files that are there whole or not at all, whatever happens while they are written.

In: a path, contents. Out: the file in place of an older one, in one step; an OSError where it cannot be written, and
then nothing of it is left.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ewan.labs.base import interrupt, ownership

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of errors of a disk that is full."""
DENIED = (errno.EROFS, errno.EACCES, errno.EPERM)
"""Those of a disk or a file that may not be written."""


class NoMoreFilesError(OSError):
    """A disk was full when it was written to: it had as many files as it can have."""


@contextmanager
def noticed(folder: Path) -> Iterator[None]:
    """Check the disk of a folder as soon as a write fails: once the partial files are removed, there is room again.
    Raises NoMoreFilesError if the disk has no room for another file, otherwise the original error."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and _has_no_more_files(folder):
            raise NoMoreFilesError(error.errno, error.strerror, error.filename) from None
        raise


def write_all(files: Mapping[Path, bytes | str]) -> list[Path]:
    """Several files and the directories that they are in: all of them, or, after an OSError, none, and what was there
    before is as it was."""
    made: list[Path] = []
    new: dict[Path, Path] = {}
    with interrupt.deferred():
        try:
            for path, content in files.items():
                with noticed(path.parent):
                    made += _made_folders(path.parent)
                    new[path] = beside(path)
                    _put(new[path], path, content)
            for path, whole in new.items():
                whole.replace(path)
        except OSError:
            for whole in new.values():
                with suppress(OSError):
                    whole.unlink(missing_ok=True)
            for folder in reversed(made):
                with suppress(OSError):
                    folder.rmdir()
            raise
    return list(files)


def _put(new: Path, path: Path, content: bytes | str) -> None:
    """Writes what is to become the file at `path`, which is what an OSError names."""
    try:
        with anew(new) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _made_folders(folder: Path) -> list[Path]:
    """Makes a directory, and gives those that were not there, the upper ones first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    done: list[Path] = []
    try:
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            done.append(each)
        folder.mkdir(exist_ok=True)  # FileExistsError where a file is there
    except OSError:
        for each in reversed(done):
            each.rmdir()
        raise
    return done


def write(path: Path, content: bytes | str) -> None:
    """OSError where there is no room, no such directory, or no permission; `path` is then what it was before."""
    new = beside(path)
    with interrupt.deferred():
        try:
            _put(new, path, content)
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
    """The error line of a file that could not be written, with its remedy: to make room if there is none, otherwise
    `instead`. `place` is named if the error names no file."""
    path = place if error.filename is None else Path(os.fsdecode(error.filename))
    if error.errno not in FULL:
        return f"{path}: {error.strerror}: {instead}"
    folder = path if path.is_dir() else path.parent
    return no_space(next(each for each in (folder, *folder.parents) if each.is_dir()), error)


def _has_no_more_files(folder: Path, least: int = 1) -> bool:
    there = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
    found = os.statvfs(there)
    return bool(found.f_files) and found.f_ffree < least


def no_space(folder: Path, error: OSError | None = None, files: int = 1) -> str:
    """The error line of a full disk: it lacks bytes, or room for further files. The latter is known from `error`, or
    because the disk has no room for `files` more."""
    if isinstance(error, NoMoreFilesError) or _has_no_more_files(folder, files):
        return f"no space left in {folder}: its disk has as many files as it can have, remove some"
    return f"no space left in {folder}: make room there"


def beside(path: Path) -> Path:
    """The path of a new file that is to take the place of `path`. It is another one at each call, so that threads,
    processes and machines that write the same file at once do not meet, and no user can put something there first."""
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
    """Return whether the file belongs to a user other than root, this user and, under sudo, the caller."""
    return found.st_uid not in ownership.own_users(os.environ)


def anew(path: Path) -> IO[bytes]:
    """An empty file, open for writing, in place of what lies there. It is made, or FileExistsError: a link that another
    user puts there leads nowhere."""
    path.unlink(missing_ok=True)
    return path.open("xb")


@contextmanager
def journal(path: Path, mode: int = 0o666) -> Iterator[int]:
    """A file that only grows, as a descriptor for reading and for `add_line`; it is made where it is not there. OSError
    for a link."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def add_line(path: Path, descriptor: int, line: bytes) -> None:
    """Writes a line, or several, at the end of the journal at `path`, which is open as `descriptor`, and which no other
    process writes meanwhile. After an OSError the file is what it was before."""
    before = os.fstat(descriptor).st_size
    left = line
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(descriptor, before)
        raise OSError(error.errno, error.strerror, str(path)) from None
