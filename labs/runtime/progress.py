"""The page that the virtual kernel keeps its progress on: a file that it maps.

In: a path. Out: virtual time, packets, the task that runs; and a flag that asks the kernel to end.
"""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ewan.labs.base.units import NS_PER_SECOND

MAGIC = 0x4557414E50524F47
PAGE_BYTES = 4096
STOP_OFFSET = 28
_LAYOUT = struct.Struct("<QQQII16sQQ")


class ProgressReading(NamedTuple):
    """Times in ns; virtual time since the virtual kernel started. `entries`: how often programs entered the kernel;
    0 of kernels that do not count that."""

    virtual_ns: int
    packets: int
    pid: int
    task: str
    clock_reads: int
    entries: int = 0


def reading(page: bytes) -> ProgressReading | None:
    """The reading of a page; None if no kernel has written to it."""
    magic, virtual_ns, packets, pid, _, task, reads, entries = _LAYOUT.unpack_from(page)
    if magic != MAGIC:
        return None
    return ProgressReading(virtual_ns, packets, pid, task.split(b"\0")[0].decode(errors="replace"), reads, entries)


class SharedPage:
    """A page of memory that a virtual kernel maps; its file is removed by `close`.

    This process reads the file and does not map it: what the guest cuts off would end a process that does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.unlink(missing_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.pwrite(self._file, bytes(PAGE_BYTES), 0)

    def read(self) -> ProgressReading | None:
        """None until the kernel is there, and for kernels that know no such page."""
        page = os.pread(self._file, PAGE_BYTES, 0)
        return reading(page) if len(page) == PAGE_BYTES else None

    def stop(self) -> None:
        """Asks the guest to end its program and power off."""
        os.pwrite(self._file, struct.pack("<I", 1), STOP_OFFSET)

    def close(self) -> None:
        """Removes its file."""
        os.close(self._file)
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run. `packets_per_s` is of wall time, since the last report; None: not known."""

    wall_ns: int
    virtual_ns: int | None = None
    packets: int = 0
    packets_per_s: float = 0.0
    expected_ns: int = 0
    """About how much virtual time all of it takes; 0: not known."""

    @property
    def ratio(self) -> float | None:
        """Wall seconds for a virtual second."""
        return self.wall_ns / self.virtual_ns if self.virtual_ns else None

    @property
    def left_ns(self) -> int | None:
        """Wall time to the expected end; None where it is not known, or has passed."""
        if self.ratio is None or self.virtual_ns is None or self.expected_ns <= self.virtual_ns:
            return None
        return round((self.expected_ns - self.virtual_ns) * self.ratio)


class Watch:
    """Follows a page: progress for people, and whether virtual time stands still."""

    def __init__(self, page: SharedPage, expected_ns: int) -> None:
        self._page = page
        self._expected_ns = expected_ns
        self._start = self._changed = self._reported = time.monotonic_ns()
        self._time = self._packets = 0

    def progress(self) -> RunProgress:
        """The present progress of the run; the packet rate is that since the last call."""
        now = time.monotonic_ns()
        reading = self._page.read()
        if reading is None:
            return RunProgress(now - self._start)
        pace = (reading.packets - self._packets) * NS_PER_SECOND / max(now - self._reported, 1)
        self._packets, self._reported = reading.packets, now
        return RunProgress(now - self._start, reading.virtual_ns, reading.packets, pace, self._expected_ns)

    def still(self) -> tuple[int, ProgressReading | None]:
        """For how many ns of wall time virtual time has not moved, and the reading."""
        now = time.monotonic_ns()
        reading = self._page.read()
        if reading is None or reading.virtual_ns != self._time:
            self._changed = now
            self._time = reading.virtual_ns if reading else 0
        return now - self._changed, reading
