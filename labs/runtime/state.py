"""The directories in which labs keep their state, one each, and the lock by which makes and removals of labs take
turns.

In: the state root. Out: paths, manifests, locks.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ewan.labs.base import codec, documents, ownership, writing
from ewan.labs.base.codec import Struct
from ewan.labs.base.reading import read_bytes
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.locks import is_there, lock
from ewan.labs.runtime.state_documents import MANIFEST, OWNER, Head

LOCK = ".lock"
"""In the root; no lab's name begins so."""
ELSEWHERE = "set EWAN_STATE to a directory of root's that has it"
FILES = 16
"""A number of files above that of the smallest lab's directory."""
LOCK_WAIT_S = 120.0
LINE_WAIT_S = 10.0
# As `ewan-node` checks it: names become parts of paths.
T = TypeVar("T")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class Owner(Struct):
    """Who has labs made: the user, who may have called sudo, and the directory of the program's copy."""

    uid: int
    checkout: str

    @classmethod
    def of(cls, environment: Mapping[str, str], checkout: Path) -> Owner:
        """The owner that this process has."""
        user, _ = ownership.caller(environment) or (os.getuid(), 0)
        return cls(user, str(checkout))

    def words(self) -> str:
        """The owner in words for a person."""
        try:
            name = pwd.getpwuid(self.uid).pw_name
        except KeyError:
            name = f"user {self.uid}"
        return f"{name}, {self.checkout}"


class State:
    """The state root: below it, DIR/<lab>/ with manifest.json, plan.json, applied.json, hosts and the spinners'."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def directory(self, name: str) -> Path:
        """The state directory of a lab of this name, which may not exist; LabError for a word that is no lab's name."""
        if not NAME.fullmatch(name):
            raise LabError(f"{name!r} is no lab's name: use 1 to 64 letters, digits, '-', '_' or '.'")
        return self.root / name

    def names(self) -> list[str]:
        """Directories of labs, also of those whose making ended before their manifest was there."""
        try:
            return sorted(entry.name for entry in self.root.iterdir() if entry.is_dir() and NAME.fullmatch(entry.name))
        except FileNotFoundError:
            return []
        except PermissionError:
            raise LabError(f"{self.root} cannot be read: labs of the live clock need root") from None

    def owner(self, name: str) -> Owner | None:
        """Who had a lab made; None where that is not known, as of one whose making was killed."""
        try:
            return self.read(Owner, name, OWNER)
        except LabError:
            return None

    def manifest(self, name: str) -> Head | None:
        """The identity of the lab; None if no manifest was written yet, or the lab is down."""
        return self.read(Head, name, MANIFEST)

    def read(self, kind: type[T], name: str, file: str) -> T | None:
        """A document of a lab; None where there is none."""
        path = self.directory(name) / file
        try:
            return documents.read(kind, path)
        except FileNotFoundError:
            return None
        except documents.DocumentError as error:
            raise LabError(str(error)) from None

    def write(self, name: str, file: str, value: Struct) -> None:
        """A document of a lab, whole or as it was before."""
        path = self.directory(name) / file
        try:
            writing.write(path, codec.ordered(value))
        except OSError as error:
            raise self.unwritable(error, path) from None

    def unwritable(self, error: OSError, place: Path) -> LabError:
        """The error for a lab's record that could not be written, with its remedy."""
        said = writing.trouble(error, place, "set EWAN_STATE to a directory of root's")
        return LabError(f"{said}, or {ELSEWHERE}" if error.errno in writing.FULL else said)

    def full(self, said: str) -> str:
        """The same for a program's message, in which the error is a word among others; empty for another error."""
        if os.strerror(errno.ENOSPC) not in said or str(self.root) not in said:
            return ""
        return f"{writing.no_space(self.root, files=FILES)}, or {ELSEWHERE}"

    def own(self, name: str, owner: Owner) -> None:
        """Notes who has a lab made."""
        self.write(name, OWNER, owner)

    def add(self, name: str, file: str, entry: Struct) -> None:
        """A line of JSON at the end of a lab's file; several processes may add to it at once."""
        path = self.directory(name) / file
        try:
            with writing.journal(path) as descriptor:
                lock(descriptor, time.monotonic() + LINE_WAIT_S, f"{path}: another process writes there for long")
                writing.add_line(path, descriptor, codec.line(entry))
        except OSError as error:
            raise self.unwritable(error, path) from None

    def lines(self, kind: type[T], name: str, file: str) -> list[T]:
        """The documents that were added to a file, one a line; none if there is no file. An incomplete last line is
        ignored."""
        path = self.directory(name) / file
        try:
            return [codec.decode(kind, line, f"{path}:") for line in read_bytes(path).split(b"\n")[:-1]]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LabError(f"{path}: {error.strerror}") from None
        except ValueError as error:
            raise LabError(str(error)) from None

    @contextmanager
    def locked(self) -> Iterator[int]:
        """One making or removal of a lab at a time; gives the lock's descriptor, for children to hold it too.

        The lock is on a file in the root that only this user can open, since a user who can open a file can lock it.
        Both are removed with the last lab: so nothing is left, and whoever got a lock on a file that is gone meanwhile
        tries again.
        """
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:  # removed between the two
                continue
            except OSError as error:
                raise self.unwritable(OSError(error.errno, error.strerror, str(self.root)), self.root) from None
            try:
                lock(descriptor, deadline, f"another `ewan up` or `ewan down` has been at work in {self.root} for long")
                if not is_there(descriptor, self.root / LOCK):
                    continue
                try:
                    yield descriptor
                finally:
                    self._remove_empty_root()
                return
            finally:
                os.close(descriptor)

    def _remove_empty_root(self) -> None:
        try:
            if {entry.name for entry in self.root.iterdir()} == {LOCK}:
                (self.root / LOCK).unlink()
            self.root.rmdir()
        except OSError:  # other labs are there
            return
