"""Cleans the directory of a run after all of its commands have ended and before its results are read.

In: the directory, whose content may be anything that commands wrote; other users may have changed it if the commands
let them. Out: plain files and directories of this user, which other users cannot write, and no program with set-user-ID
rights. Symbolic links are removed, because they are no results and would lead readers and writers elsewhere. Files with
holes are removed too, because they take no room and would take hours to read; so are names that are no text, and
anything too deep or too large. The content of a directory is examined when others can no longer change it, and by
descriptors only.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import unicodedata
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.base.reading import is_hollow, one_line
from ewan.labs.base.units.shown import about

MOST_DEEP = 64
"""Directories one in the other: each is open while one in it is looked at."""
MOST_ENTRIES = 100_000
MOST_SHOWN = 200
_RIGHTS = stat.S_ISUID | stat.S_ISGID
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NO_TEXT = {"Cc", "Cs", "Zl", "Zp"}
"""Categories of Unicode: control characters, ends of lines, and what stands for bytes that are no UTF-8."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A directory that is looked through. `shown`: its path in messages."""

    descriptor: int
    shown: str
    entries: Iterator[os.DirEntry[str]]


def settle(directory: Path) -> str | None:
    """Sets modes back, and removes what is no result. Why the results are not whole, in one line; None: they are.

    Root takes back what was given to another user; for others, what is another user's goes.
    """
    wrong = None
    number = 0
    looked = os.open(directory, _LOOK | os.O_DIRECTORY)
    try:
        folders = [_entered(looked, str(directory))]
    finally:
        os.close(looked)
    try:
        while folders:
            folder = folders[-1]
            entry = next(folder.entries, None)
            if entry is None:
                os.close(folders.pop().descriptor)
                continue
            number += 1
            shown = f"{folder.shown}/{entry.name}"
            why = "too much was left there" if number > MOST_ENTRIES else None
            if len(folders) == MOST_DEEP and entry.is_dir(follow_symlinks=False):
                why = "it is too deep"
            try:
                inner = why or _settled(folder.descriptor, entry.name, shown)
                if isinstance(inner, str):
                    remove(folder.descriptor, entry.name)
                    wrong = wrong or f"{one_line(shown, MOST_SHOWN)}: was removed: {inner}"
                elif inner is not None:
                    folders.append(inner)
            except FileNotFoundError:
                continue
            except OSError as error:
                wrong = wrong or f"{one_line(shown, MOST_SHOWN)}: cannot be kept or removed: {error.strerror}"
    finally:
        for folder in folders:
            os.close(folder.descriptor)
    return wrong


def _settled(folder: int, name: str, shown: str) -> _Folder | str | None:
    """An entry of a directory, if it is one to be looked through; or why it is to be removed."""
    looked = os.open(name, _LOOK, dir_fd=folder)
    try:
        found = os.fstat(looked)
        is_folder = stat.S_ISDIR(found.st_mode)
        if not is_folder and not stat.S_ISREG(found.st_mode):
            os.unlink(name, dir_fd=folder)
            return None
        if any(unicodedata.category(letter) in _NO_TEXT for letter in name):
            return "its name is no text in one line"
        if found.st_uid != os.geteuid() and (os.geteuid() != 0 or (not is_folder and found.st_nlink > 1)):
            return "it is another user's"
        if is_folder:
            return _entered(looked, shown)
        _restrict(looked, found, stat.S_IWOTH | _RIGHTS, stat.S_IRUSR)
        file = os.open(_of(looked), _READ)
        try:
            hollow = is_hollow(file, found)
        finally:
            os.close(file)
        return f"of its {about(found.st_size, 'size', 3)} nearly all are holes" if hollow else None
    finally:
        os.close(looked)


def _entered(looked: int, shown: str) -> _Folder:
    """A directory that others can no longer change."""
    _restrict(looked, os.fstat(looked), stat.S_IWOTH, stat.S_IRWXU)
    descriptor = os.open(_of(looked), _LIST)
    return _Folder(descriptor, shown, os.scandir(descriptor))


def _restrict(looked: int, found: os.stat_result, taken: int, given: int) -> None:
    """Takes rights away, and gives the owner some; root takes back what was given to another user."""
    if os.geteuid() == 0:
        taken |= stat.S_IWGRP
        if found.st_uid != 0:
            os.chown(_of(looked), 0, 0)
    mode = stat.S_IMODE(found.st_mode)
    if mode & ~taken | given != mode:
        _of(looked).chmod(mode & ~taken | given)


def _of(looked: int) -> Path:
    """A path of what is open: a descriptor that only looks neither reads nor changes a mode."""
    return Path(f"/proc/self/fd/{looked}")


def remove(folder: int, name: str) -> None:
    """Removes an entry of a directory, with all that is in it, however deep: the directories in it are moved up first.
    OSError where that cannot be done."""
    waiting = [name]
    while waiting:
        each = waiting.pop()
        looked = os.open(each, _LOOK, dir_fd=folder)
        try:
            if not stat.S_ISDIR(os.fstat(looked).st_mode):
                os.unlink(each, dir_fd=folder)
                continue
            with contextlib.suppress(PermissionError):  # another user's may be one that can be emptied
                _of(looked).chmod(stat.S_IRWXU)
            inner = os.open(_of(looked), _LIST)
        finally:
            os.close(looked)
        try:
            with os.scandir(inner) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(_moved_up(inner, entry.name, folder))
                    else:
                        os.unlink(entry.name, dir_fd=inner)
        finally:
            os.close(inner)
        os.rmdir(each, dir_fd=folder)


def _moved_up(inner: int, name: str, folder: int) -> str:
    """Moves a directory into another one; its new name."""
    looked = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=inner)
    try:
        with contextlib.suppress(PermissionError):
            _of(looked).chmod(stat.S_IRWXU)
    finally:
        os.close(looked)
    new = f".{secrets.token_hex(8)}"
    os.rename(name, new, src_dir_fd=inner, dst_dir_fd=folder)
    return new


def clear(directory: Path, kept: Container[str]) -> None:
    """Removes all entries of a directory but those of these names. OSError where that cannot be done."""
    folder = os.open(directory, _LIST)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name not in kept:
                    remove(folder, entry.name)
    finally:
        os.close(folder)


def remove_tree(path: Path) -> None:
    """The same of a path, as far as it can be done."""
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, _LIST)
        try:
            remove(folder, path.name)
        finally:
            os.close(folder)
