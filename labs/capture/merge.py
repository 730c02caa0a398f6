"""Captures of several machines put together: packets in the order of their times, by the clock of one of them. Pure.

In: of each machine the interfaces that it captures, how far its clock is ahead, and its pcapng stream in pieces, as
`ewan-node capture --marks` writes it. Out: one pcapng stream in pieces. Each interface says whose clock stamped it and
the uncertainty of that clock; where the clocks are compared again, its statistics say so at that place.

A packet goes out when no machine can have an older one any more: each says in marks until when all its packets are in
its stream (a block of statistics without counts). Source: PCAP Next Generation Capture File Format,
draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pcapng import FileWriter, blocks

from ewan.labs.base.units.shown import about
from ewan.labs.capture.bpf import SNAP_BYTES
from ewan.labs.capture.words import UNBOUNDED, Bounds

_STATISTICS, _PACKET = 5, 6
_HEAD = struct.Struct("<II")
_PLACE = struct.Struct("<III")
_MARK_BYTES = 24
_PACKET_BYTES = 32
"""The length of a packet's block without the packet: every block has at least this length."""
_OPTION = struct.Struct("<HH")
_RECEIVED, _DROPPED = 4, 7
_ETHERNET = 1
_NANOSECONDS = b"\x09"
_LOW = 0xFFFFFFFF
_RESERVED = 256
"""Bytes of an interface's last statistics, at most."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a machine: how far it is ahead of the first machine's, and the uncertainty of that, in ns."""

    ahead_ns: int = 0
    uncertainty_ns: int = 0

    @property
    def words(self) -> str:
        """The correction of the machine's time stamps, in words."""
        way = "ahead of" if self.ahead_ns >= 0 else "behind"
        apart, known = (about(ns, "time", 6) for ns in (abs(self.ahead_ns), self.uncertainty_ns))
        return f"its clock is {apart} {way} the first machine's, known to ±{known}: times are moved by that"


@dataclass(slots=True)
class _InterfaceCount:
    """The packets of one interface."""

    seen: int = 0
    dropped: int = 0
    written: int = 0


@dataclass(slots=True)
class _MachineStream:
    """A machine's stream. `first`: the number in the file of its first interface."""

    first: int
    interfaces: int
    clock: Clock
    unread: bytearray = field(default_factory=bytearray)
    until_ns: int = 0
    held_bytes: int = 0
    ended: bool = False


_Held = tuple[int, bytearray, str]
"""Time, block, machine."""


class Merger:
    """`interfaces`: of each machine, the names of its interfaces in the order of its stream; the first machine's clock
    is the file's. `clocks`: of the others. ValueError of `add` for what is no such stream."""

    def __init__(self, interfaces: Mapping[str, Sequence[str]], clocks: Mapping[str, Clock], bounds: Bounds) -> None:
        self._section = blocks.SectionHeader(options={"shb_userappl": "ewan"})
        self._sources: dict[str, _MachineStream] = {}
        self._of: list[str] = []
        for machine, names in interfaces.items():
            clock = clocks.get(machine, Clock())
            self._sources[machine] = _MachineStream(len(self._of), len(names), clock)
            for name in names:
                said = clock.words if machine in clocks else "stamped by its own clock, which is the file's"
                self._section.new_member(
                    blocks.InterfaceDescription,
                    link_type=_ETHERNET,
                    snaplen=min(bounds.snap_bytes, SNAP_BYTES),
                    options={
                        "if_name": name,
                        "if_description": f"machine {machine}",
                        "if_tsresol": _NANOSECONDS,
                        "opt_comment": f"machine {machine}: {said}",
                    },
                )
                self._of.append(machine)
        self.counted = [_InterfaceCount() for _ in self._of]
        self._out = io.BytesIO()
        self._writer = FileWriter(self._out, self._section)
        self._left = bounds.most_bytes - self._out.tell() - _RESERVED * len(self._of)
        if self._left < 0:
            raise ValueError("the file may not be large enough for its own head")
        self._unbounded = bounds.most_bytes == UNBOUNDED
        self._most = bounds.packets
        self._waiting: list[_Held] = []
        self._kept = self._last_ns = 0
        self.end: Literal["full", "packets"] | None = None
        """The bound that was reached; after it only the end is written."""

    def held_bytes(self, machine: str) -> int:
        """The bytes of a machine's packets that wait here for packets of other machines."""
        return self._sources[machine].held_bytes

    def compared(self, machine: str, clock: Clock) -> None:
        """From now on a machine's times are moved by this; the file says so here."""
        source = self._sources[machine]
        source.clock = clock
        for number in range(source.first, source.first + source.interfaces):
            self._statistics(number, f"machine {machine}: {clock.words}, from here on")

    def add(self, machine: str, piece: bytes) -> None:
        """More of a machine's stream."""
        source = self._sources[machine]
        unread, at = source.unread, 0
        unread += piece
        while len(unread) - at >= _HEAD.size:
            kind, size = _HEAD.unpack_from(unread, at)
            if not 12 <= size <= SNAP_BYTES + 4096:
                raise ValueError(f"machine {machine}: {bytes(unread[at : at + 40])!r} came where its packets should")
            if len(unread) - at < size:
                break
            if kind == _PACKET and size >= _PACKET_BYTES:
                block = unread[at : at + size]
                number, high, low = _PLACE.unpack_from(block, _HEAD.size)
                time_ns = (high << 32 | low) - source.clock.ahead_ns
                _PLACE.pack_into(block, _HEAD.size, source.first + number, time_ns >> 32, time_ns & _LOW)
                self._waiting.append((time_ns, block, machine))
                source.held_bytes += size
            elif kind == _STATISTICS:
                self._told(source, bytes(unread[at : at + size]))
            at += size
        del unread[:at]

    def finished(self, machine: str) -> None:
        """Nothing more comes of a machine's stream, whole or not."""
        self._sources[machine].ended = True

    def take(self) -> bytes:
        """The bytes that can be written now."""
        open_ = [source.until_ns for source in self._sources.values() if not source.ended]
        self._waiting.sort(key=_time)
        count = bisect_right(self._waiting, min(open_), key=_time) if open_ else len(self._waiting)
        due = self._waiting[:count]
        del self._waiting[:count]
        for _, block, machine in due:
            self._sources[machine].held_bytes -= len(block)
        for time_ns, block, _ in due:
            if self.end is not None:
                break
            if not self._unbounded and len(block) > self._left:
                self.end = "full"
                break
            self._left -= len(block)
            self._last_ns = time_ns
            self._out.write(block)
            self.counted[_PLACE.unpack_from(block, _HEAD.size)[0]].written += 1
            self._kept += 1
            if self._kept == self._most:
                self.end = "packets"
        return self._taken()

    def close(self, clocks: Mapping[str, Clock]) -> bytes:
        """The rest, when all have finished, and the packet counts of each interface. `clocks`: as they were
        compared at the end."""
        rest = self.take()
        for number, (machine, counted) in enumerate(zip(self._of, self.counted, strict=True)):
            said = f"machine {machine}, at the end: {clocks[machine].words}" if machine in clocks else ""
            self._statistics(number, said, counted)
        return rest + self._taken()

    def _told(self, source: _MachineStream, block: bytes) -> None:
        """A mark, or how many packets there were at an interface."""
        number, high, low = _PLACE.unpack_from(block, _HEAD.size)
        if len(block) == _MARK_BYTES:
            source.until_ns = max(source.until_ns, (high << 32 | low) - source.clock.ahead_ns)
            return
        counted = self.counted[source.first + number]
        for code, value in _options(block[_HEAD.size + _PLACE.size : -4]):
            if code == _RECEIVED:
                counted.seen = int.from_bytes(value, "little")
            elif code == _DROPPED:
                counted.dropped = int.from_bytes(value, "little")

    def _statistics(self, number: int, said: str, counted: _InterfaceCount | None = None) -> None:
        options: dict[str, str | int] = {"opt_comment": said} if said else {}
        if counted is not None:
            options |= {"isb_ifrecv": counted.seen, "isb_osdrop": counted.dropped, "isb_usrdeliv": counted.written}
        high, low = self._last_ns >> 32, self._last_ns & _LOW
        at = {"interface_id": number, "timestamp_high": high, "timestamp_low": low}
        block = self._section.new_member(blocks.InterfaceStatistics, **at, options=options)
        before = self._out.tell()
        self._writer.write_block(block)
        if counted is None:
            self._left -= self._out.tell() - before

    def _taken(self) -> bytes:
        taken = self._out.getvalue()
        self._out.seek(0)
        self._out.truncate()
        return taken


def _time(held: _Held) -> int:
    return held[0]


def _options(text: bytes) -> Iterable[tuple[int, bytes]]:
    at = 0
    while at + _OPTION.size <= len(text):
        code, size = _OPTION.unpack_from(text, at)
        if code == 0:
            return
        at += _OPTION.size
        yield code, text[at : at + size]
        at += size + -size % 4
