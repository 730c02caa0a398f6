"""A run's directory is for one virtual kernel at a time, also when one outlives its command for a moment.

In: a directory. Out: a lock on it, which the kernel's processes inherit and which ends with the last of them: a command
that was killed cannot wait for its kernel, and the kernel goes on writing until it has ended too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labs.runtime.base import LabError
from labs.runtime.locks import lock

WAIT_S = 10.0


@contextmanager
def occupied(directory: Path) -> Iterator[int]:
    """Gives the lock's descriptor, for children to hold it too. LabError where somebody else holds it for long."""
    with _locked(directory, WAIT_S) as descriptor:
        yield descriptor


@contextmanager
def _locked(directory: Path, wait_s: float) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        refusal = f"{directory}: another virtual lab is at work there: wait for its end"
        lock(descriptor, time.monotonic() + wait_s, refusal)
        yield descriptor
    finally:
        os.close(descriptor)


def root_of(directory: Path) -> Path:
    """Where the guest's root is, for a run in `directory`."""
    real = directory.resolve()
    return real.with_name(f".{real.name}.root")


def kernel_files_of(directory: Path) -> Path:
    """Where the kernel has its own files, for a run in `directory`."""
    return directory / "uml"


def remove_killed(place: Path) -> None:
    """Removes what virtual kernels of killed commands left in the directories of `place`: roots, and their files."""
    for root in place.glob(root_of(place / "*").name):
        directory = place / root.name.removeprefix(".").removesuffix(".root")
        if not directory.exists():
            shutil.rmtree(root, ignore_errors=True)
        with contextlib.suppress(OSError, LabError), _locked(directory, 0.0):
            shutil.rmtree(root, ignore_errors=True)
            shutil.rmtree(kernel_files_of(directory), ignore_errors=True)
