"""The protocol between the virtual kernel and a program that sets windows: `serve` is all that a program needs.

In: a socket that keeps the bounds of messages, inherited from `ewan transfer --program`, with a record of 160 bytes for
each event of each flow. Out: an answer of 48 bytes to each record but the last of a flow. The kernel, and simulated
time with it, stands still between the two. emulator/kernel/external/tcp_external.c is the other end.

This module needs only Python's standard library, and no other module of ewan: a copy of it works anywhere.
"""

from __future__ import annotations

import enum
import ipaddress
import operator
import os
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

VARIABLE = "EWAN_CONTROLLER"
"""The variable of the environment with the number of the socket's descriptor."""
MAGIC = 0x4E415745
VERSION = 1
CWND_MAX = (1 << 31) - 1
SHORTEST_NS = 10_000
"""The shortest interval."""
_RECORD = struct.Struct("<IHHII9Q8I16s16sHHI")
_ANSWER = struct.Struct("<IHHIIQQIIII")
_LONGEST_NS = (1 << 62) - 1


class ProtocolError(ValueError):
    """A message that is no record, or a number that no answer can have; one line."""


class FlowEvent(enum.IntFlag):
    """The things that happen to a flow. `START` and `END` always have a record."""

    ACK = 1
    INTERVAL = 2
    LOSS = 4
    """Linux begins to repair a loss that acknowledgements show."""
    TIMEOUT = 8
    """The retransmission timer has expired: the window is now what is in flight and one packet."""
    ECN = 16
    """Linux begins a round trip in which congestion marks count once."""
    START = 32
    END = 64


class EventRecord(NamedTuple):
    """A flow at an event. Rates are in bytes per second; a time or rate of 0 is not known."""

    flow: int
    """From 0, in the order in which connections send their first data."""
    events: int
    """The sum of `FlowEvent`s since the record before."""
    time_ns: int
    """Simulated time since the kernel started."""
    rtt_ns: int
    """The last sample since the record before."""
    min_rtt_ns: int
    srtt_ns: int
    delivered_packets: int
    """In all; so are lost and marked packets."""
    delivery_rate: int
    """The last sample since the record before."""
    lost_packets: int
    marked_packets: int
    pacing_rate: int
    in_flight_packets: int
    cwnd_packets: int
    ssthresh_packets: int
    mss_bytes: int
    recovery_state: int
    """The state of Linux's loss recovery: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss."""
    flags: int
    """1: the application limits the sample of the delivery rate; 2: the window limits the flow; 4: an acknowledgement
    since the record before was of all packets up to a later one."""
    acked_packets: int
    """Acknowledged or selectively acknowledged since the record before."""
    merged_events: int
    """The number of events that it tells."""
    source: bytes
    """16 bytes: an IPv6 address, or one that stands for an IPv4 address."""
    destination: bytes
    source_port: int
    destination_port: int
    prior_cwnd_packets: int
    """The window before the last loss, timeout or congestion mark."""

    @property
    def ends(self) -> bool:
        """Return whether the flow has ended; this record has no answer."""
        return bool(self.events & FlowEvent.END)

    @property
    def app_limited(self) -> bool:
        """Return whether the application limits the sample of the delivery rate."""
        return bool(self.flags & 1)

    @property
    def cwnd_limited(self) -> bool:
        """Return whether the window limits what the flow sends."""
        return bool(self.flags & 2)

    @property
    def advanced(self) -> bool:
        """Return whether an acknowledgement since the record before was of all packets up to a later one."""
        return bool(self.flags & 4)

    @property
    def addresses(self) -> tuple[str, str]:
        """The source's and the destination's address as text."""
        return _address(self.source), _address(self.destination)


class Reduction(enum.IntEnum):
    """Who reduces the window after a loss. `LINUX`: by RFC 6937, to the ssthresh that the program sets."""

    PROGRAM = 1
    LINUX = 2


class WindowAnswer(NamedTuple):
    """The values that are to be: 0 leaves each as it is. `ask`: the sum of the `FlowEvent`s with a record;
    `interval_ns`: between two events `INTERVAL`; `pacing_rate`: bytes per second; `reduction`: a `Reduction`, at first
    the program's."""

    cwnd_packets: int = 0
    pacing_rate: int = 0
    interval_ns: int = 0
    ask: int = 0
    ssthresh_packets: int = 0
    reduction: int = 0


UNCHANGED = WindowAnswer()
_MOST = WindowAnswer(CWND_MAX, (1 << 64) - 1, _LONGEST_NS, 31, CWND_MAX, 2)


def unpack(message: bytes | memoryview) -> EventRecord:
    """The record of a message; ProtocolError for another message."""
    if len(message) != _RECORD.size:
        raise ProtocolError(f"a record has {len(message)} bytes: version {VERSION} has {_RECORD.size}")
    magic, version, size, *fields = _RECORD.unpack(message)
    if (magic, version, size) != (MAGIC, VERSION, _RECORD.size):
        raise ProtocolError(f"a record is of version {version}: this module knows version {VERSION}")
    return EventRecord._make(fields)


def pack(flow: int, answer: WindowAnswer) -> bytes:
    """The message of an answer; ProtocolError for a number that it cannot have."""
    try:
        cwnd, pacing, interval, ask, ssthresh, reduction = map(operator.index, answer)
        timed = interval == 0 or SHORTEST_NS <= interval <= _LONGEST_NS
        if timed and max(cwnd, ssthresh) <= CWND_MAX and ask <= _MOST.ask and reduction <= _MOST.reduction:
            return _ANSWER.pack(MAGIC, VERSION, _ANSWER.size, flow, cwnd, pacing, interval, ask, ssthresh, reduction, 0)
    except (TypeError, struct.error):
        pass
    raise ProtocolError(_wrong(answer))


def _wrong(answer: WindowAnswer) -> str:
    for name, value, most in zip(WindowAnswer._fields, answer, _MOST, strict=True):
        least = SHORTEST_NS if name == "interval_ns" else 1
        if not isinstance(value, int) or (value and not least <= value <= most):
            return f"{name} is {value!r}: write a whole number from {least} to {most}, or 0 to leave it as it is"
    return f"{answer!r} is no answer"


class Channel:
    """The socket to the kernel. `descriptor`: of the socket; the inherited one if absent."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            said = os.environ.get(VARIABLE, "")
            if not said.isdecimal():
                raise ProtocolError(f"{VARIABLE} names no socket: start this program by ewan transfer --program")
            descriptor = int(said)
        self._socket = socket.socket(fileno=descriptor)
        self._buffer = bytearray(_RECORD.size + 1)
        self._view = memoryview(self._buffer)

    def receive(self) -> EventRecord | None:
        """Waits for the next record; None when the kernel has ended."""
        try:
            size = self._socket.recv_into(self._buffer)
        except ConnectionResetError:
            return None
        return unpack(self._view[:size]) if size else None

    def answer(self, flow: int, answer: WindowAnswer) -> None:
        """Answers the last record, which is of this flow."""
        message = pack(flow, answer)
        try:
            self._socket.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return  # the kernel has ended: receive() will say so

    def close(self) -> None:
        """The kernel, which may wait for an answer, ends."""
        self._socket.close()


def serve(decide: Callable[[EventRecord], WindowAnswer | None], descriptor: int | None = None) -> None:
    """Answers all records until the kernel ends. `decide` gets each record; what it returns for the last of a flow
    (`record.ends`) is not used, and None leaves all as it is."""
    channel = Channel(descriptor)
    while (record := channel.receive()) is not None:
        answer = decide(record)
        if not record.events & FlowEvent.END:
            channel.answer(record.flow, UNCHANGED if answer is None else answer)


def _address(packed: bytes) -> str:
    address = ipaddress.IPv6Address(packed)
    return str(address.ipv4_mapped or address)
