"""Chooses the directory for the file that is the memory of a virtual kernel, which maps it, also to execute.

In: the bytes that the kernel is given. Out: a `MemoryHome`, or LabError in one line. It is /dev/shm where that has
room. Containers have little there, and mount it noexec: behind the wall the file then lies in a file system of its own
(emulator/node/src/wall/tree.rs), and where there are no namespaces in the cache or in a directory for temporary files.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ewan.labs.base import cache
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import ROOT
from ewan.labs.runtime import memory, wall
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary

SHARED_MEMORY = Path("/dev/shm")
KIND = "memory"
"""The kind of these files in the cache."""
ELSEWHERE = (Path("/var/tmp"),)


class MemoryHome(NamedTuple):
    """`free_bytes`: the room in the directory; None: the memory of this machine is the only bound."""

    directory: Path
    free_bytes: int | None


def found(wanted_bytes: int = 0, binary: Path | None = None, shared: Path = SHARED_MEMORY) -> MemoryHome:
    """The directory for `wanted_bytes`; LabError where there is none. `binary`: the preferred node binary."""
    fault = unusable(shared)
    if not fault and (free := memory.available(shared)) >= wanted_bytes:
        return MemoryHome(shared, free)
    others = list(_others())
    if not wall.off() and wall.found(node_binary(binary)).namespaces is True:
        for place in (shared, *others):
            if _is_writable(place):
                return MemoryHome(place, None)
    usable = [MemoryHome(place, memory.available(place)) for place in others if not unusable(place)]
    usable += [] if fault else [MemoryHome(shared, memory.available(shared))]
    for home in usable:
        if (home.free_bytes or 0) >= wanted_bytes:
            return home
    if not usable:
        raise LabError(fault)
    return max(usable, key=lambda home: home.free_bytes or 0)


def unusable(directory: Path) -> str:
    """The reason why a directory cannot hold the memory file, in a line; empty where it can."""
    remedy = f"mount -t tmpfs tmpfs {directory} (in a container: --shm-size, or --ipc=host)"
    if not _is_writable(directory):
        return f"the virtual clock needs {directory}, and it is not there or not writable: {remedy}"
    if os.statvfs(directory).f_flag & os.ST_NOEXEC:
        return f"the virtual clock executes from {directory}, which is mounted noexec: {remedy}"
    return ""


def _is_writable(directory: Path) -> bool:
    return directory.is_dir() and os.access(directory, os.W_OK)


def _others() -> Iterator[Path]:
    with contextlib.suppress(UserError):  # there may be neither a cache nor a directory in its place
        yield cache.kept(os.environ, KIND, ROOT).resolve()
    yield from dict.fromkeys((Path(tempfile.gettempdir()).resolve(), *ELSEWHERE))
