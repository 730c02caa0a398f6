"""The command line of `ewan-node capture`. Pure.

In: taps, bounds, a compiled filter. Out: words; the first is the binary's own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import orjson

from ewan.labs.capture.bpf import SNAP_BYTES
from ewan.labs.capture.points import Tap

PART = "capture"
FILE = "packets.pcapng"
"""The file of a capture that is part of a program, in its command's own directory."""
PIPE = "-"
NAMESPACES = "/run/netns"
UNBOUNDED = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """`snap_bytes`: of each packet; `most_bytes`: of the file; `packets`, `longest_ns`: None is without a bound."""

    snap_bytes: int = SNAP_BYTES
    most_bytes: int = UNBOUNDED
    packets: int | None = None
    longest_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """A capture that goes on while a lab is up. `program`: the filter's instructions; `file`: a path, or PIPE."""

    taps: tuple[Tap, ...]
    bounds: Bounds
    program: str
    file: str

    def words(self, lab: str) -> list[str]:
        """For one process that has all taps."""
        return [*options(lab, self.taps, self.bounds, self.program), "--end-when-full", "--", self.file]


class CaptureCounts(TypedDict):
    """The number of packets by outcome. `end`: signal, full, packets, time, reader, lost. `lost`: in a lab over several
    machines, a line for each that was lost."""

    seen: int
    kept: int
    dropped: int
    end: str
    lost: NotRequired[list[str]]


def options(lab: str, taps: Sequence[Tap], bounds: Bounds, program: str) -> list[str]:
    """The options that select the packets to capture and their length. `program`: the filter's instructions."""
    places = [
        {
            "name": tap.name,
            "netns": f"{NAMESPACES}/ewan-{lab}-{tap.node}",
            "interface": tap.interface,
            "packets": tap.packets,
        }
        for tap in taps
    ]
    words = ["--taps", orjson.dumps(places).decode(), "--snap-bytes", str(bounds.snap_bytes)]
    words += ["--most-bytes", str(bounds.most_bytes)]
    words += [] if bounds.packets is None else ["--most-packets", str(bounds.packets)]
    words += [] if bounds.longest_ns is None else ["--longest-ns", str(bounds.longest_ns)]
    return words + (["--filter", program] if program else [])
