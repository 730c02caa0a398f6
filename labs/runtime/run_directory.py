"""A run's directory is for one virtual kernel at a time, also when one outlives its command for a moment.

In: a directory. Out: a lock of it, which the kernel's processes inherit and which ends with the last of them: a command
that was killed cannot wait for its kernel, and the kernel goes on writing until it has ended too. The lock is on a file
beside the directory, in which the guest may write, and it is removed at the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.locks import clear, held
from ewan.labs.runtime.run_leftovers import remove_tree

WAIT_S = 10.0


@contextmanager
def occupied(directory: Path) -> Iterator[int]:
    """Gives the lock's descriptor, for children to hold it too. LabError if another process holds it for long."""
    with _locked(directory, WAIT_S) as descriptor:
        yield descriptor


def _locked(directory: Path, wait_s: float) -> AbstractContextManager[int]:
    return held(lock_of(directory), wait_s, f"{directory}: another virtual lab is at work there: wait for its end")


def root_of(directory: Path) -> Path:
    """The guest's root, for a run in `directory`."""
    return _beside(directory, "root")


def lock_of(directory: Path) -> Path:
    """The file that is locked, for a run in `directory`."""
    return _beside(directory, "lock")


def _beside(directory: Path, what: str) -> Path:
    real = directory.resolve()
    return real.with_name(f".{real.name}.{what}")


def kernel_files_of(directory: Path) -> Path:
    """The folder of the kernel's own files, for a run in `directory`."""
    return directory / "uml"


def remove_killed(place: Path) -> None:
    """Removes what virtual kernels of killed commands left in the directories of `place`: roots, and their files."""
    for root in place.glob(root_of(place / "*").name):
        directory = place / root.name.removeprefix(".").removesuffix(".root")
        if not directory.exists():
            remove_tree(root)
        with contextlib.suppress(OSError, LabError), _locked(directory, 0.0):
            remove_tree(root)
            remove_tree(kernel_files_of(directory))
    for path in place.glob(lock_of(place / "*").name):
        clear(path)
