"""Descriptions and scenarios in the directory where Studio was started, and those of the library, which are read-only.

In: names of files, texts. Out: the same, with a tag of each text: a write names the text that it was made of, so that
two tabs do not write over each other."""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ewan.labs.base import reading, writing
from ewan.labs.base.product import LIBRARY
from ewan.labs.runtime import locks

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}(\.[A-Za-z0-9][A-Za-z0-9_-]{0,60}){0,3}\.(lab|scenario)\.yaml")
LOCK = ".studio-saves"
"""The file in the directory whose lock the server that saves holds; it is there only meanwhile."""
SAVES_S = 10.0
Where = Literal["here", "library"]


class RefusedError(Exception):
    """One line for the person; `conflict`: the file is another one meanwhile."""

    def __init__(self, message: str, *, conflict: bool = False) -> None:
        super().__init__(message)
        self.conflict = conflict


@dataclass(frozen=True, slots=True)
class FileName:
    """A file that there is."""

    name: str
    where: Where


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text; `tag` names it."""

    name: str
    where: Where
    text: str
    tag: str


class Files:
    """The files of one directory and of the library."""

    def __init__(self, here: Path) -> None:
        self._here = here

    def every(self) -> list[FileName]:
        """All of them, by name; those of the directory first."""
        here, library = _names(self._here), _names(LIBRARY)
        return [*(FileName(name, "here") for name in here), *(FileName(name, "library") for name in library)]

    def path(self, name: str, where: Where = "here") -> Path:
        """The path of a file of that name, whether it exists or not; RefusedError for another name."""
        if not NAME.fullmatch(name):
            raise RefusedError(f'"{name}": write a name like my-lab.lab.yaml')
        place = self._here if where == "here" else LIBRARY
        path = place / name
        if path.resolve().parent != place.resolve():
            raise RefusedError(f"{name}: is a link to a file that is elsewhere")
        return path

    def stands(self, name: str, text: str) -> bool:
        """Return whether a file of that name has this text: then its content is known to whoever may read the file."""
        both: tuple[Where, ...] = ("here", "library")
        for where in both:
            with contextlib.suppress(RefusedError):
                if self.read(name, where).text == text:
                    return True
        return False

    def read(self, name: str, where: Where) -> FileText:
        """A file's text; RefusedError where it cannot be read."""
        path = self.path(name, where)
        try:
            text = reading.read_text(path)
        except FileNotFoundError:
            raise RefusedError(f"{name}: there is no such file") from None
        except OSError as error:
            raise RefusedError(f"{name}: {error.strerror}") from None
        return FileText(name, where, text, tag(text))

    def write(self, name: str, text: str, made_of: str | None) -> FileText:
        """Writes a file of the directory. `made_of`: the tag of the text that was changed; None: there was none.

        RefusedError where another text is there, or it cannot be written.
        """
        path = self.path(name)
        refusal = f"{name}: another save takes more than {SAVES_S:g} s: save it once more"
        try:
            # Between the comparison and the end of the write no other thread and no other server saves.
            with locks.held(self._here / LOCK, SAVES_S, refusal):
                self._check_made_of(path, made_of)
                writing.write(path, text)
        except OSError as error:
            raise RefusedError(f"{name}: {error.strerror}") from None
        return FileText(name, "here", text, tag(text))

    def _check_made_of(self, path: Path, made_of: str | None) -> None:
        try:
            now: str | None = tag(reading.read_text(path))
        except FileNotFoundError:
            now = None
        if now != made_of:
            why = "there is a file of that name" if made_of is None else "was changed by another user"
            raise RefusedError(f"{path.name}: {why}: open it, or choose another name", conflict=True)


def _names(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("*.yaml") if NAME.fullmatch(path.name) and path.is_file())


def tag(text: str) -> str:
    """Names a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
