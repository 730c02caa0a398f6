"""A transfer of a volume, or of what fits in a time, on a stream of its own: the sender and the receiver."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger

from .clock import now_ns
from .peer import Peer

LEAST_WAITING_BYTES = 1 << 20
"""Bytes that wait to be sent or acknowledged at least, where there are so many."""
CHUNK_BYTES = 1 << 16


class Sender(Peer):
    """Fills a stream of its own. `volume` None: without an end; `writes`: of the application that limits it, None: it
    writes as much as the library takes."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, stream: int, logger: QuicLogger | None,
                 volume: int | None, writes: Iterator[tuple[int, int]] | None = None) -> None:  # fmt: skip
        super().__init__(connection, sock, stream, logger)
        self.volume, self.written, self.number, self.whole = volume, 0, -1, False
        self.writes, self.due = writes, 0
        self.next = None if writes is None else next(writes)
        self.sender: Any = None

    def due_ns(self) -> int | None:
        """The next write."""
        return None if self.next is None or self.connected_ns is None or self.closed else self.next[0]

    def work(self) -> None:
        """Keeps enough in the library's buffer, and closes the connection when all is acknowledged."""
        if self.connected_ns is None or self.closed:
            return
        if self.number < 0:
            self.number = self.connection.get_next_available_stream_id(is_unidirectional=True)
            self.write(b"")
            self.sender = self.connection._streams[self.number].sender
        most = max(LEAST_WAITING_BYTES, 2 * self.loss.congestion_window)
        while not self.whole and self.written - self.sender._buffer_start < most and (left := self.left()):
            self.written += left
            self.whole = self.written == self.volume
            self.write(bytes(left))
        if self.sender.is_finished:
            self.last_ns = now_ns()
            self.close()

    def left(self) -> int:
        """The bytes of the next piece; 0: the application has not written more yet."""
        most = CHUNK_BYTES if self.volume is None else min(CHUNK_BYTES, self.volume - self.written)
        if self.writes is None:
            return most
        while self.next is not None and self.next[0] <= now_ns():
            self.due += self.next[1]
            enough = self.volume is not None and self.due >= self.volume
            self.next = None if enough else next(self.writes)
        return min(most, self.due - self.written)

    def write(self, data: bytes) -> None:
        """A piece of zeros."""
        self.connection.send_stream_data(self.number, data, end_stream=self.whole)

    def record(self) -> dict[str, Any]:
        """As of each end, with its own."""
        return super().record() | {"bytes": self.written, "samples": self.samples}


class Receiver(Peer):
    """Counts what arrives at all, and what a program may have in order, in bins."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, stream: int, logger: QuicLogger | None,
                 bin_ns: int) -> None:  # fmt: skip
        super().__init__(connection, sock, stream, logger)
        self.bin_ns, self.bytes, self.arrived = bin_ns, 0, 0
        self.receiver: Any = None
        self.bins: dict[int, list[int]] = {}

    def take(self, data: bytes, address: Any) -> None:
        """Looks after each datagram at what is there of the stream."""
        super().take(data, address)
        if self.receiver is None and self.connection._streams:
            self.receiver = next(iter(self.connection._streams.values())).receiver
        if self.receiver is None:
            return
        behind = sum(each.stop - each.start for each in self.receiver._ranges)
        delivered = self.receiver._buffer_start - self.bytes
        arrived = self.receiver._buffer_start + behind - self.arrived
        if arrived or delivered:
            self.last_ns = now_ns()
            self.bytes += delivered
            self.arrived += arrived
            if self.bin_ns:
                counts = self.bins.setdefault(self.last_ns // self.bin_ns, [0, 0])
                counts[0] += arrived
                counts[1] += delivered

    def record(self) -> dict[str, Any]:
        """As of each end, with its own."""
        bins = [{"number": number, "arrived": came, "delivered": order} for number, (came, order) in self.bins.items()]
        return super().record() | {"bytes": self.bytes, "bins": bins}
