"""Directories of runs: results/<UTC>-<lab>/, one each, owned by whoever called sudo; and disks that are full."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import orjson

from ewan.labs.base import interrupt, ownership
from ewan.labs.base.product import RESULTS
from ewan.labs.base.writing import DENIED, FULL, anew, no_space
from ewan.labs.runtime.base import LabError

_MADE = re.compile(r"\d{8}T\d{6}Z-(?P<lab>.+?)(-\d+)?")
LEAST_BYTES = 1 << 20
"""Without so much room nothing is begun: a certificate of a large lab takes about as much."""
ROOM = ".room"
"""Tells whether there is so much, and is removed at once."""
FULL_BYTES = 64 << 10
"""A disk with less is full: a record that is not whole was cut off by its end."""
NO_SPACE = "no space left in"
ELSEWHERE = "run it in a directory where you may write"


class DiskFullError(LabError):
    """The disk is full: nothing more can be measured."""


def make(lab: str) -> Path:
    """A new directory that can be written; runs that start in the same second get -2, -3, …

    LabError where none can be made, before anything is started. What killed commands left beside it is removed.
    """
    check(RESULTS)
    from ewan.labs.runtime.run_directory import remove_killed  # commands that make no directory begin sooner without it

    remove_killed(RESULTS)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 1
    while True:
        directory = RESULTS / (f"{stamp}-{lab}" if number == 1 else f"{stamp}-{lab}-{number}")
        try:
            interrupt.left[str(directory)] = partial(_left, directory)
            directory.mkdir(parents=True)
            check(directory)  # another process may have made the one above it meanwhile
            _try(directory)
            return directory
        except (FileExistsError, NotADirectoryError):
            if not RESULTS.is_dir():
                raise LabError(f"{RESULTS} is no directory: results go there; move it away") from None
            number += 1
        except OSError as error:
            full = _full(directory) if error.errno in FULL else None  # asked before what is there again makes room
            drop(directory)
            if full is not None:
                raise full from None
            raise LabError(f"{directory}: {error.strerror}: {ELSEWHERE}") from None


def check(directory: Path) -> None:
    """LabError where root would write where others than root and who called sudo can write too."""
    try:
        ownership.check_alone(directory, os.environ)
    except PermissionError as error:
        raise LabError(
            f"{error.filename}: {error.strerror}, and root writes results only where no other user writes: run it as "
            "the directory's owner, or elsewhere"
        ) from None
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}") from None


def _left(directory: Path) -> str:
    """The line about a directory whose command is interrupted; an empty directory is removed and gives no line."""
    drop(directory)
    return f"what was written until then is in {directory}" if directory.exists() else ""


def lab_of(directory: Path) -> str | None:
    """The lab whose name `make` gave a directory; None for one that it did not make."""
    found = _MADE.fullmatch(directory.name)
    return found["lab"] if found else None


def _try(directory: Path) -> None:
    """OSError where what a run leaves cannot be written."""
    path = directory / ROOM
    try:
        with anew(path) as file:
            os.posix_fallocate(file.fileno(), 0, LEAST_BYTES)
    finally:
        path.unlink(missing_ok=True)


def drop(directory: Path) -> None:
    """Takes a directory away in which nothing was written."""
    with contextlib.suppress(OSError):
        directory.rmdir()


@contextlib.contextmanager
def kept(directory: Path, instead: str = ELSEWHERE) -> Iterator[None]:
    """Turn errors of writing in a directory into one line: DiskFullError, or another LabError. `instead`: the remedy if
    this user may not write.
    """
    check(directory)
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise _full(directory, error) from None
        remedy = f": {instead}" if error.errno in DENIED else ""
        raise LabError(f"{error.filename or directory}: {error.strerror}{remedy}") from None
    except orjson.JSONDecodeError as error:
        status = os.statvfs(directory)
        if status.f_bavail * status.f_frsize < FULL_BYTES:
            raise _full(directory) from None
        raise LabError(f"{directory}: a record was not written whole ({error})") from None
    except LabError as error:
        if is_full(str(error)):
            # Some say themselves where there is no room, where it is another place: a cache, for one.
            elsewhere = NO_SPACE in str(error) and str(directory.resolve()) not in str(error)
            raise (DiskFullError(str(error)) if elsewhere else _full(directory)) from None
        raise


def is_full(words: str) -> bool:
    """Return whether an error message, of any program, says that a disk is full."""
    return any(os.strerror(number).lower() in words.lower() for number in FULL) or "no space left" in words.lower()


def _full(directory: Path, error: OSError | None = None) -> DiskFullError:
    return DiskFullError(no_space(directory, error))


def give_back(directory: Path) -> None:
    """Under sudo, the results belong to the user who called it."""
    ownership.give_back([RESULTS], os.environ)
    ownership.give_back_tree(directory, os.environ)
