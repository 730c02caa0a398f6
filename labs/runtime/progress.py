"""The page that the virtual kernel keeps its progress on: a file that both it and this process map.

In: a path. Out: virtual time, packets, the task that runs; and a flag that asks the kernel to end.
"""

from __future__ import annotations

import mmap
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from labs.units import NS_PER_SECOND

MAGIC = 0x4557414E50524F47
PAGE_BYTES = 4096
STOP_OFFSET = 28
_LAYOUT = struct.Struct("<QQQII16sQ")


class Reading(NamedTuple):
    """Times in ns; virtual time since the virtual kernel started."""

    virtual_ns: int
    packets: int
    pid: int
    task: str
    clock_reads: int


def reading(page: bytes | mmap.mmap) -> Reading | None:
    """What a page says; None where no kernel has written to it."""
    magic, virtual_ns, packets, pid, _, task, reads = _LAYOUT.unpack_from(page)
    if magic != MAGIC:
        return None
    return Reading(virtual_ns, packets, pid, task.split(b"\0")[0].decode(errors="replace"), reads)


class Page:
    """The page of memory that this process shares with a virtual kernel; its file is removed by `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(PAGE_BYTES))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), PAGE_BYTES)

    def read(self) -> Reading | None:
        """None until the kernel is there, and for kernels that know no such page."""
        return reading(self._map)

    def stop(self) -> None:
        """Asks the guest to end its program and power off."""
        struct.pack_into("<I", self._map, STOP_OFFSET, 1)

    def close(self) -> None:
        """Unmaps the page and removes its file."""
        self._map.close()
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is. `packets_per_s` is of wall time, since the last report; None: not known."""

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

    def __init__(self, page: Page, expected_ns: int) -> None:
        self._page = page
        self._expected_ns = expected_ns
        self._start = self._changed = self._reported = time.monotonic_ns()
        self._time = self._packets = 0

    def progress(self) -> RunProgress:
        """How far the run is now; the packet rate is that since the last call."""
        now = time.monotonic_ns()
        reading = self._page.read()
        if reading is None:
            return RunProgress(now - self._start)
        pace = (reading.packets - self._packets) * NS_PER_SECOND / max(now - self._reported, 1)
        self._packets, self._reported = reading.packets, now
        return RunProgress(now - self._start, reading.virtual_ns, reading.packets, pace, self._expected_ns)

    def still(self) -> tuple[int, Reading | None]:
        """For how many ns of wall time virtual time has not moved, and the reading."""
        now = time.monotonic_ns()
        reading = self._page.read()
        if reading is None or reading.virtual_ns != self._time:
            self._changed = now
            self._time = reading.virtual_ns if reading else 0
        return now - self._changed, reading
