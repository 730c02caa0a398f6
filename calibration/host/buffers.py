"""Limits of buffers and memory, which are read and never changed.

In: files below /proc. Out: `Buffers`; what cannot be read is None. Needs no root.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ewan.labs.base.codec import Struct
from ewan.labs.runtime.memory import free_memory_bytes


class Buffers(Struct):
    """Buffer limits of this host's own network namespace, in bytes and packets. TCP's are the least, the first and the
    largest size of a socket's buffer (tcp(7)); `rmem_max_bytes` and `wmem_max_bytes` the largest that a program without
    privileges may ask for."""

    rmem_max_bytes: int | None
    wmem_max_bytes: int | None
    tcp_rmem_bytes: tuple[int, ...]
    tcp_wmem_bytes: tuple[int, ...]
    netdev_max_backlog_packets: int | None
    free_memory_bytes: int


def read_buffers(root: Path = Path("/")) -> Buffers:
    """Limits are read below `root`."""
    core, tcp = root / "proc/sys/net/core", root / "proc/sys/net/ipv4"
    return Buffers(
        rmem_max_bytes=_first(core / "rmem_max"),
        wmem_max_bytes=_first(core / "wmem_max"),
        tcp_rmem_bytes=_numbers(tcp / "tcp_rmem"),
        tcp_wmem_bytes=_numbers(tcp / "tcp_wmem"),
        netdev_max_backlog_packets=_first(core / "netdev_max_backlog"),
        free_memory_bytes=free_memory_bytes(),
    )


def _numbers(path: Path) -> tuple[int, ...]:
    with contextlib.suppress(OSError, ValueError):
        return tuple(int(word) for word in path.read_text().split())
    return ()


def _first(path: Path) -> int | None:
    return next(iter(_numbers(path)), None)
