"""Where submissions are: the files below a directory, as learning platforms leave them there.

In: a directory, or a single file. Out: each file that was handed in, with its path below the directory. Links are not
followed, and hidden files and tables are none. A directory that has a submission's document in it was unpacked by a
platform, one that has a course's or an experiment's is a student's folder itself: of each, only that file is looked
at, but for a student's folder with the file that `ewan course hand-in` wrote into it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ewan.extras.course import ledger
from ewan.extras.course.folder import RECORD
from ewan.extras.course.submission import DOCUMENT
from ewan.labs.base.errors import UserError
from ewan.labs.record.experiment import DOCUMENT as EXPERIMENT

MOST_FILES = 100_000
TABLES = (".csv", ledger.ENDING)
ZIP = ".zip"
WHOLE = (DOCUMENT, RECORD, EXPERIMENT)
"""A directory with one of these is one submission, or none."""
"""Endings of what teachers have beside submissions."""


class SourceError(UserError):
    """Why nothing is found, in one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was handed in. `file`: its path as messages show it."""

    file: str
    path: Path


def below(place: Path, leave: Collection[Path] = ()) -> list[Source]:
    """All that was handed in, sorted; `leave`: directories that are not looked into. SourceError: there is none."""
    if place.is_file():
        return [Source(_told(place.name), place)]
    if not place.is_dir():
        raise SourceError(f"{place}: there is no such file or directory: name the directory of what was handed in")
    found = []
    for each in _walked(place, leave):
        found.append(each)
        if len(found) > MOST_FILES:
            raise SourceError(f"{place}: has more than {MOST_FILES} files: name the directory of what was handed in")
    if not found:
        raise SourceError(f"{place}: nothing was handed in there: students hand in what `ewan course hand-in` writes")
    return sorted(found, key=lambda each: each.file)


def folder_of(file: str) -> PurePosixPath:
    """Where what is written of a submission goes, below the directory of all: its own path without ".zip"."""
    path = PurePosixPath(file)
    if path.name == DOCUMENT:
        return path.parent
    return path.with_suffix("") if path.suffix.casefold() == ZIP else path


def _walked(place: Path, leave: Collection[Path]) -> Iterator[Source]:
    left = {path.absolute() for path in leave}
    for folder, folders, names in os.walk(place):
        here = Path(folder)
        folders[:] = [
            name for name in folders if not name.startswith((".", "__")) and (here / name).absolute() not in left
        ]
        if whole := [name for name in WHOLE if name in names]:
            handed_in = [name for name in names if whole[0] == RECORD and name.casefold().endswith(ZIP)]
            folders[:], names = [], handed_in or whole[:1]
        for name in names:
            if not name.startswith(".") and not name.endswith(TABLES):
                path = here / name
                yield Source(_told(path.relative_to(place).as_posix()), path)


def _told(name: str) -> str:
    """A path as text that may be written anywhere, also of a file whose name is not in UTF-8."""
    return os.fsencode(name).decode(errors="replace")
