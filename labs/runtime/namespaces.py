"""Network namespaces by name, and who is in them: what is the same for labs of namespaces and of containers.

In: names below /run/netns, /proc. Out: what tells one namespace from another, process ids.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import psutil

NAMESPACES = Path("/run/netns")

Identity = tuple[int, int]
"""A namespace's device and inode; namespaces share one device, which no plain file is on."""


def identity_of(path: Path) -> Identity | None:
    """None where nothing is."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def processes_in(networks: Collection[Identity]) -> dict[Identity, list[int]]:
    """The processes in each of these network namespaces."""
    found: dict[Identity, list[int]] = {}
    for pid in psutil.pids():
        own = identity_of(Path(f"/proc/{pid}/ns/net"))
        if own is not None and own in networks:
            found.setdefault(own, []).append(pid)
    return found
