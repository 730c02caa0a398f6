"""What the commands of a run left in its directory, when all of them have ended and before anybody reads it.

In: the directory, in which everything may be as commands wanted it. Out: others may no longer write there, and no
program in it gives rights away. Links are gone, which are no results and would lead readers and writers elsewhere; so
are files with holes: they take no room, and to read them would take hours.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from labs.reading import one_line
from labs.units import about

MOST_HOLLOW = 16 << 20
"""Bytes of a file with holes: so much is soon read."""
MOST_HOLES = 16
"""A file beyond has at most so many times the bytes that it takes on the disk, which may compress it."""
BLOCK = 512
"""Bytes, the unit of `st_blocks` whatever the file system."""
MOST_SHOWN = 200
_RIGHTS = stat.S_ISUID | stat.S_ISGID


def settle(directory: Path) -> str | None:
    """Sets modes back, removes links and files with holes. Why the results are not whole, in one line; None: they are.

    What cannot be changed, since it is another user's, stays as it is.
    """
    root = os.geteuid() == 0
    wrong = None
    for path, folders, files, folder in os.fwalk(directory):
        with contextlib.suppress(OSError):
            _restrict(folder, os.fstat(folder), stat.S_IWOTH | (stat.S_IWGRP if root else 0), root)
        for name in (*folders, *files):  # the folder's entries are ours alone by now
            with contextlib.suppress(OSError):
                mode = os.lstat(name, dir_fd=folder).st_mode
                if stat.S_ISLNK(mode):
                    os.unlink(name, dir_fd=folder)
                if not stat.S_ISREG(mode):
                    continue
                file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    found = os.fstat(file)
                    _restrict(
                        file,
                        found,
                        stat.S_IWOTH | _RIGHTS | (stat.S_IWGRP if root else 0),
                        root and found.st_nlink == 1,
                    )
                    hollow = _is_hollow(file, found)
                finally:
                    os.close(file)
                if hollow:
                    os.unlink(name, dir_fd=folder)
                    shown = one_line(str(Path(path) / name), MOST_SHOWN)
                    wrong = f"{shown}: was removed: of its {about(found.st_size, 'size', 3)} nearly all are holes"
    return wrong


def _restrict(descriptor: int, found: os.stat_result, taken: int, owned: bool) -> None:
    """Takes rights away; `owned`: what was given to another user is taken back."""
    if owned and found.st_uid != os.geteuid():
        os.fchown(descriptor, os.geteuid(), os.getegid())
    if (mode := stat.S_IMODE(found.st_mode)) & taken:
        os.fchmod(descriptor, mode & ~taken)


def _is_hollow(descriptor: int, found: os.stat_result) -> bool:
    if found.st_size <= max(MOST_HOLLOW, MOST_HOLES * found.st_blocks * BLOCK):
        return False
    # Some file systems count blocks late.
    return os.lseek(descriptor, 0, os.SEEK_HOLE) < found.st_size
