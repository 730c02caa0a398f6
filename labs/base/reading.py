"""Files that a person names, read within limits: regular files only, of a bounded size, in UTF-8.

Comes in: a path. Goes out: its contents, or an OSError whose `strerror` says what is wrong, so that whoever reads a
file has one kind of error to put into words. A FIFO would be waited for, and a device read for ever: none is opened.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import functools
import os
import stat
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path

MOST_TEXT = 4 << 20
"""Bytes of a description, a scenario, a table of delays, a loss pattern."""

MOST_RECORD = 256 << 20
"""Bytes of a document that the lab writes itself: plans, programs, schedules, records of experiments."""

MOST_HOLLOW = 16 << 20
"""Bytes of a file with holes: so much is soon read."""
MOST_HOLES = 16
"""A file beyond has at most so many times the bytes that it takes on the disk, which may compress it."""
BLOCK = 512
"""Bytes, the unit of `st_blocks` whatever the file system."""

_PIECE = 1 << 20

MOST_DIGITS = 40
"""The digits of a number: more than a whole number of 128 bits has. Python converts longer ones ever more slowly."""

_noted: ContextVar[dict[Path, os.stat_result] | None] = ContextVar("_noted", default=None)
_held: dict[Path, os.stat_result] = {}
_digests: dict[Path, bytes] = {}
"""SHA-256 of what was read of the files that were noted."""


@contextlib.contextmanager
def noted() -> Iterator[dict[Path, os.stat_result]]:
    """The files that are read meanwhile, each with its status, which has the user to whom it belongs."""
    files: dict[Path, os.stat_result] = {}
    before = _noted.set(files)
    try:
        yield files
    finally:
        _noted.reset(before)


def note(files: Mapping[Path, os.stat_result]) -> None:
    """These count as read now: what was made of them is used again."""
    if (noted_now := _noted.get()) is not None:
        noted_now.update(files)


def hold(files: Mapping[Path, os.stat_result]) -> None:
    """From now on this process refuses to read one of these files where it is no longer what it was: the user has
    agreed to what was in it. Contents are compared, and where a file is not read at once, its status."""
    _held.update(files)


def _check_held(found: os.stat_result, path: Path) -> None:
    then = _held.get(path)
    if then is None:
        return
    of = ("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
    if any(getattr(found, name) != getattr(then, name) for name in of):
        raise _changed(path)


def _changed(path: Path | str) -> OSError:
    return _refused(errno.ESTALE, "was changed after you were asked about it", path)


def read_bytes(path: Path | str, most: int = MOST_RECORD) -> bytes:
    """The content of a regular file of at most `most` bytes."""
    content = bytearray()
    with open_regular(path, most) as file:
        # A read of so many bytes at once would take the memory for all of them, however short the file is.
        while len(content) <= most and (piece := file.read(min(_PIECE, most + 1 - len(content)))):
            content += piece
    if len(content) > most:  # it grew, or is one of those whose size the system does not know
        raise too_large(path, most)
    noted_now, place = _noted.get() is not None, Path(path)
    if noted_now or place in _held:
        import hashlib  # not at the top, since a command that reads nothing would wait for it

        digest = hashlib.sha256(content).digest()
        if place in _held and _digests.get(place, digest) != digest:
            raise _changed(path)
        if noted_now:
            _digests[place] = digest
    return bytes(content)


def read_text(path: Path | str, most: int = MOST_TEXT) -> str:
    """The same as text in UTF-8."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(errno.EILSEQ, "is not text in UTF-8", path) from None


def decoded(content: bytes) -> str:
    """Text in the encodings in which editors and spreadsheets write it; other bytes become marks of replacement."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def too_large(path: Path | str, most: int) -> OSError:
    """The error that `path` holds more than `most` bytes."""
    return _refused(errno.EFBIG, f"is larger than {most >> 20} MiB, the most that is read", path)


def open_regular(path: Path | str, most: int | None = None) -> BufferedReader:
    """A regular file, open for reading; of at most `most` bytes, and none whose bytes are nearly all holes, which take
    no room and would take hours to read."""
    try:
        # Looked at before it is opened, since merely opening it can block or act on a device; and again in case it
        # changed.
        _check(Path(path).stat(), path, most)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:  # NUL, or characters that no file's name can have
        raise _refused(errno.EINVAL, "is no path", path) from None
    try:
        found = os.fstat(descriptor)
        _check(found, path, most)
        _check_kernel_file(descriptor, path)
        if is_hollow(descriptor, found):
            raise _refused(errno.EFBIG, "has holes in place of nearly all of its bytes", path)
        _check_held(found, Path(path))
        if (files := _noted.get()) is not None:
            files[Path(path)] = found
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check_kernel_file(descriptor: int, path: Path | str) -> None:
    """Refuses what only looks like a regular file: those of /proc and /sys, such as /proc/self/mem behind a link."""
    if os.fstat(descriptor).st_dev in _of_kernel():
        raise _refused(errno.EINVAL, "is not a regular file", path)


@functools.cache
def _of_kernel() -> frozenset[int]:
    """The devices of the file systems in which the kernel makes up the contents of files."""
    found = []
    for place in ("/proc", "/sys"):
        with contextlib.suppress(OSError):
            found.append(Path(place).stat().st_dev)
    return frozenset(found) - {Path("/").stat().st_dev}


def _check(found: os.stat_result, path: Path | str, most: int | None) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise _refused(errno.EISDIR, "is a directory", path)
    if not stat.S_ISREG(found.st_mode):
        raise _refused(errno.EINVAL, "is not a regular file", path)
    if most is not None and found.st_size > most:
        raise too_large(path, most)


def is_hollow(descriptor: int, found: os.stat_result) -> bool:
    """Return whether nearly all of the size of an open file of this status consists of holes."""
    if found.st_size <= max(MOST_HOLLOW, MOST_HOLES * found.st_blocks * BLOCK):
        return False
    # Some file systems count blocks late.
    return os.lseek(descriptor, 0, os.SEEK_HOLE) < found.st_size


def _refused(number: int, reason: str, path: Path | str) -> OSError:
    return OSError(number, reason, str(path))


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock (flock(2)) on a file. True if this user may not know, False if there is no
    such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def end_of(path: Path, most: int) -> tuple[str, bool]:
    """The last `most` bytes of a file as text, and whether that is all of it."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - most, 0))
        return file.read(most).decode(errors="replace"), size <= most


def printable(line: str, kept: str = "") -> str:
    """A line that a terminal shows as it is: control characters are ?, except those of `kept`."""
    return "".join(letter if letter.isprintable() or letter in kept else "?" for letter in line)


def one_line(text: str, most: int | None = None) -> str:
    """`text` in one line that a terminal shows as it is: white space is one space, other control characters are ?."""
    line = printable(" ".join(text.split()))
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def shortened(line: str, most: int = 1000) -> str:
    """The beginning and the end of a line that is longer: where it is, and what to write instead."""
    return line if len(line) <= most else f"{line[: most * 2 // 3]} … {line[-most // 3 :]}"
