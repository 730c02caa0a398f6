"""The JSON of iperf3 (`-J`), as far as it is read: other keys may be there, and older versions lack some.

In: bytes or data. Out: a report; ValueError, one line, for another text."""

from __future__ import annotations

from collections.abc import Iterator

from ewan.labs.base.codec import Struct

Number = int | float
"""iperf3 writes a whole number where there is one."""


class _Named(Struct, forbid_unknown_fields=False):
    host: str | None = None


class _TestStart(Struct, forbid_unknown_fields=False):
    """`blksize`: payload of a datagram. `omit`: so many seconds are run before those that count."""

    blksize: int | None = None
    omit: Number = 0


class _Connected(Struct, forbid_unknown_fields=False):
    """A connection by the number of its socket in the process."""

    socket: int
    local_port: int | None = None


class _Start(Struct, forbid_unknown_fields=False):
    tcp_mss: int | None = None
    tcp_mss_default: int | None = None
    connecting_to: _Named | None = None
    accepted_connection: _Named | None = None
    connected: tuple[_Connected, ...] = ()
    test_start: _TestStart = _TestStart()


class StreamInterval(Struct, forbid_unknown_fields=False):
    """An interval of a stream; times in seconds, RTT in µs, the window in bytes. A sender has other keys than a
    receiver, and TCP others than UDP."""

    seconds: Number
    end: Number
    bytes: int
    sender: bool
    omitted: bool = False
    retransmits: int | None = None
    snd_cwnd: int | None = None
    rtt: Number | None = None
    rttvar: Number | None = None
    packets: int | None = None
    lost_packets: int | None = None
    jitter_ms: Number | None = None


class _Interval(Struct, forbid_unknown_fields=False):
    streams: tuple[StreamInterval, ...]


class _End(Struct, forbid_unknown_fields=False):
    """The end of a test, as one end of a connection reports it."""

    sender: bool
    socket: int | None = None
    start: Number = 0
    end: Number = 0
    bytes: int = 0
    min_rtt: Number | None = None
    retransmits: int | None = None


class Datagrams(Struct, forbid_unknown_fields=False):
    """Counters of a stream of datagrams, or of all of them."""

    packets: int = 0
    lost_packets: int = 0
    out_of_order: int | None = None
    jitter_ms: Number = 0
    end: Number = 0


class Sum(Struct, forbid_unknown_fields=False):
    """The sum of all streams. `sender`: in older versions true, for the bytes that were sent."""

    bytes: int = 0
    end: Number | None = None
    packets: int | None = None
    sender: bool | None = None


class EndedStream(Struct, forbid_unknown_fields=False):
    """A connection has two ends, datagrams have one entry."""

    sender: _End | None = None
    receiver: _End | None = None
    udp: Datagrams | None = None


class _Ended(Struct, forbid_unknown_fields=False):
    streams: tuple[EndedStream, ...] = ()
    sum_sent: Sum | None = None
    sum_received: Sum | None = None


class Report(Struct, forbid_unknown_fields=False):
    """The report of one end of a test; `server_output_json` is the other end's."""

    start: _Start = _Start()
    intervals: tuple[_Interval, ...] = ()
    end: _Ended = _Ended()
    server_output_json: Report | None = None
    error: str | None = None

    @property
    def peer(self) -> str | None:
        """The other end, as it was named; None where no connection was begun."""
        found = self.start.connecting_to or self.start.accepted_connection
        return None if found is None else found.host

    @property
    def segment_bytes(self) -> int | None:
        """The maximum segment size; None where iperf3 does not report it."""
        return self.start.tcp_mss or self.start.tcp_mss_default or None

    def local_port(self, stream: EndedStream) -> int | None:
        """The port of this end's socket of a stream; None where the report does not have it."""
        number = None if stream.sender is None else stream.sender.socket
        return next((each.local_port for each in self.start.connected if each.socket == number), None)

    def entries(self) -> Iterator[tuple[int, StreamInterval]]:
        """The number of a stream, from 0, with its entry of each interval, while its test ran."""
        for each in self.intervals:
            yield from ((index, entry) for index, entry in enumerate(each.streams) if entry.seconds > 0)

    def of_stream(self, index: int, sender: bool) -> list[StreamInterval]:
        """The entries of a stream, of its sender or of its receiver."""
        return [entry for number, entry in self.entries() if number == index and entry.sender is sender]
