"""The packets that a capture of a node kept, as a table.

In: the capture's entry in commands.json, its pcapng file, T0 as time of day. Out: rows of `packets`, and one line on
packets that are not in them. python-pcapng reads the file; one that was cut short gives what it has.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from pcapng import FileScanner, blocks
from pcapng.exceptions import PcapngException

from ewan.generator.commands import RunCommand
from ewan.generator.readers import headers
from ewan.generator.rows import WRONG
from ewan.labs.base.codec import MOST_SHOWN
from ewan.labs.base.reading import one_line, open_regular
from ewan.labs.record import tables

FILE = "packets.pcapng"
"""In the command's own directory."""
MOST_PACKETS = 200_000
"""Packets of one capture that become rows; python-pcapng takes 80 us for each."""
_LATEST_NS = 2**63
_DIRECTIONS = {"inbound": "in", "outbound": "out"}


@dataclass(frozen=True)
class CaptureRows:
    """`packets`: rows of the table of that name. `problem`: the part that is not in them and the reason, None: they are
    complete."""

    packets: pl.DataFrame = field(default_factory=lambda: tables.empty("packets"))
    problem: str | None = None


def read(entry: RunCommand, directory: Path, t0_unix_ns: int | None) -> CaptureRows:
    """The packets of a capture in a run's directory. A capture that cannot be read gives a problem, not an error."""
    if entry.error is not None or entry.started_ns is None:
        return CaptureRows(problem=one_line(str(entry.error or "was not started"), 4 * MOST_SHOWN))
    if t0_unix_ns is None:
        return CaptureRows(problem="the run did not record when it began")
    path = directory / entry.files / FILE
    if path.is_symlink() or not path.is_file():
        return CaptureRows(problem="left no plain file")
    found = _BlockColumns()
    try:
        with open_regular(path) as file:
            found.read(file)
    except (*WRONG, OSError, RuntimeError, MemoryError, struct.error, PcapngException) as error:
        why = one_line(str(error), MOST_SHOWN) or type(error).__name__
        found.say(f"is cut short after {len(found.frames)} packets ({why})")
    return CaptureRows(found.table(entry.node, t0_unix_ns), "; ".join(found.said) or None)


class _BlockColumns:
    """The data of the blocks of a file, column by column."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.times_ns: list[int] = []
        self.sizes: list[int] = []
        self.interfaces: list[int] = []
        self.directions: list[str | None] = []
        self.names: list[str] = []
        self.said: list[str] = []
        self._ended = False

    def say(self, what: str) -> None:
        self.said.append(what)

    def read(self, file: IO[bytes]) -> None:
        beyond = 0
        for block in FileScanner(file):
            if isinstance(block, blocks.EnhancedPacket):
                if len(self.frames) < MOST_PACKETS:
                    self._packet(block)
                else:
                    beyond += 1
            elif isinstance(block, blocks.InterfaceDescription):
                self.names.append(block.options["if_name"])
            elif isinstance(block, blocks.InterfaceStatistics):
                self._statistics(block)
        if beyond:
            self.say(f"{beyond} packets after the first {MOST_PACKETS} are in the file and not in the table")
        if not self._ended:
            self.say("has no end: the capture was killed")

    def _packet(self, block: Any) -> None:
        time_ns, direction = (block.timestamp_high << 32) + block.timestamp_low, block.options["epb_flags"].inout
        if time_ns >= _LATEST_NS or block.interface_id >= len(self.names):
            raise ValueError("a packet is of no time, or of no interface of the file")
        self.frames.append(block.packet_data)
        self.times_ns.append(time_ns)
        self.sizes.append(block.packet_len)
        self.interfaces.append(block.interface_id)
        self.directions.append(_DIRECTIONS.get(direction))

    def _statistics(self, block: Any) -> None:
        self._ended = True
        seen, dropped, written = (block.options[name] for name in ("isb_ifrecv", "isb_osdrop", "isb_usrdeliv"))
        at = self.names[block.interface_id]
        if dropped:
            self.say(f"{dropped} of {seen} packets at {at} came faster than they were taken")
        if left_out := seen - dropped - written:
            self.say(f'{left_out} of {seen} packets at {at} had no room in the file: write a larger "most:"')

    def table(self, node: str, t0_unix_ns: int) -> pl.DataFrame:
        # NODE:INTERFACE, or LINK:SIDE, where sockets are at several places; an interface of the node otherwise.
        places = [tuple(name.split(":", 1)) if ":" in name else (node, name) for name in self.names]
        nodes, names = (np.array([place[which] for place in places] + [""]) for which in (0, 1))
        own = {
            "node": pl.Series(nodes[self.interfaces].tolist(), dtype=pl.String()),
            "interface": pl.Series(names[self.interfaces].tolist(), dtype=pl.String()),
            "direction": pl.Series(self.directions, dtype=pl.String()),
            "time_ns": pl.Series(self.times_ns, dtype=pl.Int64()) - t0_unix_ns,
            "size_bytes": pl.Series(self.sizes, dtype=pl.Int64()),
        }
        found = pl.DataFrame({**own, **headers.columns(self.frames)})
        return found.select(pl.col(name).cast(kind) for name, kind in tables.TABLES["packets"].items())
