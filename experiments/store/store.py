"""A directory of results by their keys, which many processes on many machines read and write at once.

In: keys, and files with where they come from. Out: root/ab/KEY.tar.zst. An entry is written under a name of its own,
brought to the disk and then renamed, so that a reader finds it whole or not at all, over NFS too, and of two writers
the later one replaces the same results by the same. Nothing here is locked: a name is only ever replaced or removed.
Damaged entries are moved to root/damaged, so that no reader finds them again. Entries of other users count as
missing."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ewan.experiments.store import entry
from ewan.experiments.store.entry import DamagedError, EntryOrigin, Manifest
from ewan.labs.base import ownership
from ewan.labs.base.reading import open_regular

DAMAGED = "damaged"
FOLDER_DIGITS = 2
ABANDONED_S = 24 * 3600
"""Files with names of their own that are so old were left by writers that were killed."""
_KEY = re.compile(r"[0-9a-f]{64}")
# Files that are no entries but that a store made: the root may hold other files of its owner.
_NEW = re.compile(rf"\.{_KEY.pattern}\..+")
_ASIDE = re.compile(rf"{_KEY.pattern}-.+{re.escape(entry.ENDING)}")


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry that is there: `bytes` on the disk, `seconds` since 1970 of its file."""

    key: str
    path: Path
    bytes: int
    seconds: float


class Store:
    """The store in a directory, which is made with its first entry. `environment`: who called sudo."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._environment = environment or {}

    def path(self, key: str) -> Path:
        """The path of the entry of a key, whether it exists or not."""
        return self.root / key[:FOLDER_DIGITS] / f"{key}{entry.ENDING}"

    def has(self, key: str) -> bool:
        """Return whether there is an entry that this user may read and trusts; it may be damaged."""
        try:
            return os.access(self.path(key), os.R_OK) and self._believed(self.path(key).lstat())
        except OSError:
            return False

    def put(self, key: str, origin: EntryOrigin, files: Mapping[str, Path]) -> Manifest:
        """Keeps files under a key, in place of an earlier entry. OSError where that fails, and then no part of it is
        left."""
        told = entry.manifest(key, origin, files)
        self._write(key, lambda to: entry.write(to, told, files))
        return told

    def put_packed(self, key: str, content: bytes) -> None:
        """The same of an entry's own bytes, which were packed elsewhere."""
        self._write(key, lambda to: to.write(content))

    def take(self, key: str, place: Path) -> Manifest | None:
        """Writes an entry's files into a directory that has none of them; None where there is no entry.

        DamagedError where it is not whole: some of its files may be in the directory then.
        """
        with self._reading(key) as source:
            return None if source is None else entry.unpack(source, key, place)

    def read(self, key: str) -> tuple[Manifest, dict[str, bytes]] | None:
        """A small entry in memory; otherwise as `take`."""
        with self._reading(key) as source:
            return None if source is None else entry.read(source, key)

    def manifest(self, key: str) -> Manifest | None:
        """The manifest of an entry; None where there is no entry, DamagedError where it has no valid manifest."""
        with self._reading(key) as source:
            return None if source is None else entry.read_manifest(source, key)

    def verify(self, key: str) -> Manifest | None:
        """The same, after all of its bytes were looked at."""
        with self._reading(key) as source:
            return None if source is None else entry.verify(source, key)

    def entries(self) -> Iterator[StoredEntry]:
        """All that are there, by their keys."""
        for folder in sorted(self._folders()):
            for path in sorted(folder.iterdir()):
                key = path.name.removesuffix(entry.ENDING)
                if path.name == f"{key}{entry.ENDING}" and _KEY.fullmatch(key):
                    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                        status = path.stat()
                        yield StoredEntry(key, path, status.st_size, status.st_mtime)

    def remove(self, key: str) -> None:
        """OSError where it cannot be; nothing where it is not there."""
        self.path(key).unlink(missing_ok=True)

    def set_aside(self, key: str) -> Path | None:
        """Moves a damaged entry to a place where no reader finds it; None where that is not possible."""
        path = self.path(key)
        aside = self.root / DAMAGED / f"{key}-{_own()}{entry.ENDING}"
        try:
            aside.parent.mkdir(exist_ok=True)
            with _itself(path.parent) as folder, _itself(aside.parent) as other:
                os.rename(path.name, aside.name, src_dir_fd=folder, dst_dir_fd=other)
        except OSError:
            return None
        return aside

    def leavings(self) -> list[Path]:
        """Files that are no entries: damaged ones that were set aside, and files of writers that were killed a day
        ago."""
        aside = self.root / DAMAGED
        found = [path for path in sorted(aside.iterdir()) if _ASIDE.fullmatch(path.name)] if aside.is_dir() else []
        before = time.time() - ABANDONED_S
        for folder in sorted(self._folders()):
            for path in sorted(each for each in folder.iterdir() if _NEW.fullmatch(each.name)):
                with contextlib.suppress(FileNotFoundError):
                    found += [path] if path.stat().st_mtime < before else []
        return found

    def _believed(self, status: os.stat_result) -> bool:
        """Return whether an entry is a file, not a link, of this user's, root's or, under sudo, the caller's.

        An entry itself holds the checksums of its bytes, so its writer can have written anything."""
        return status.st_uid in ownership.own_users(self._environment) and stat.S_ISREG(status.st_mode)

    def _folders(self) -> Iterator[Path]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            yield from (path for path in self.root.iterdir() if len(path.name) == FOLDER_DIGITS and path.is_dir())

    def _write(self, key: str, write: Callable[[IO[bytes]], object]) -> None:
        path = self.path(key)
        made = [each for each in (self.root, path.parent) if not each.is_dir()]
        path.parent.mkdir(parents=True, exist_ok=True)
        new = f".{key}.{_own()}"
        with _itself(path.parent) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(new, flags, 0o666, dir_fd=folder), "wb") as file:
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                    ownership.give_back_open(file.fileno(), self._environment)
                os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(new, dir_fd=folder)
                raise
        ownership.give_back(made, self._environment)

    @contextlib.contextmanager
    def _reading(self, key: str) -> Iterator[IO[bytes] | None]:
        try:
            file = open_regular(self.path(key))
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # files that their owner does not share
            yield None
            return
        except OSError as error:
            raise DamagedError(f"is not readable ({error.strerror})") from None
        with file:
            if not self._believed(os.fstat(file.fileno())):
                yield None
                return
            try:
                yield file
            except OSError as error:
                if error.errno in (errno.EIO, errno.ESTALE):
                    raise DamagedError(f"is not readable ({error.strerror})") from None
                raise


@contextlib.contextmanager
def _itself(folder: Path) -> Iterator[int]:
    """A folder's descriptor; OSError for a link. Another user's may be replaced while something is written into it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _own() -> str:
    """A word that no other writer has at the same time, on this machine or another."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"
