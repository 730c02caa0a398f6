"""Objects over HTTP/3 on one connection: the client that GETs them, and the server. The path of a request is the
object's size, and its body are zeros."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger

from .bulk import CHUNK_BYTES, LEAST_WAITING_BYTES
from .clock import now_ns
from .peer import Peer

PROTOCOL = H3_ALPN[0]
AUTHORITY = b"ewan"


class Server(Peer):
    """Answers each request with as many bytes as its path says."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, stream: int, logger: QuicLogger | None) -> None:
        super().__init__(connection, sock, stream, logger)
        self.http: H3Connection | None = None
        self.left: dict[int, int] = {}
        self.written = 0

    def event(self, event: events.QuicEvent) -> None:
        """Takes requests."""
        if isinstance(event, events.ProtocolNegotiated):
            self.http = H3Connection(self.connection)
        http = self.http
        for each in () if http is None else http.handle_event(event):
            if http is not None and isinstance(each, HeadersReceived):
                self.left[each.stream_id] = size = int(dict(each.headers)[b":path"][1:])
                answer = [(b":status", b"200"), (b"content-length", str(size).encode())]
                http.send_headers(each.stream_id, answer, end_stream=not size)

    def work(self) -> None:
        """Keeps enough of each object in the library's buffer."""
        if self.http is None or self.terminated:
            return
        most = max(LEAST_WAITING_BYTES, 2 * self.loss.congestion_window)
        for stream in list(self.left):
            state = self.connection._streams.get(stream)
            if state is None:  # its reader has had enough
                del self.left[stream]
                continue
            sender = state.sender
            while (left := self.left.get(stream, 0)) and sender._buffer_stop - sender._buffer_start < most:
                size = min(CHUNK_BYTES, left)
                self.http.send_data(stream, bytes(size), end_stream=size == left)
                self.left[stream] = left - size
                self.written += size
            if not self.left.get(stream):
                del self.left[stream]

    def record(self) -> dict[str, Any]:
        """As of each end, with its own."""
        return super().record() | {"bytes": self.written, "samples": self.samples}


class Client(Peer):
    """GETs so many objects (None: without an end), so many of them at a time."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, stream: int, logger: QuicLogger | None,
                 sizes: Iterator[int], count: int | None, parallel: int, bin_ns: int) -> None:  # fmt: skip
        super().__init__(connection, sock, stream, logger)
        self.sizes, self.count, self.parallel, self.bin_ns = sizes, count, parallel, bin_ns
        self.http: H3Connection | None = None
        self.asked = self.volume = self.bytes = 0
        self.open: dict[int, list[int]] = {}
        self.objects: list[dict[str, int]] = []
        self.bins: dict[int, int] = {}

    def work(self) -> None:
        """Asks for as many objects as may be on their way, and closes the connection when all have come."""
        if self.http is None or self.connected_ns is None or self.closed or self.terminated:
            return
        while len(self.open) < self.parallel and self.asked != self.count:
            size, stream = next(self.sizes), self.connection.get_next_available_stream_id()
            path = f"/{size}".encode()
            head = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", AUTHORITY), (b":path", path)]
            self.http.send_headers(stream, head, end_stream=True)
            self.open[stream] = [self.asked, now_ns(), 0]
            self.asked += 1
            self.volume += size
        if self.asked == self.count and not self.open:
            self.close()

    def event(self, event: events.QuicEvent) -> None:
        """Takes answers. The server's settings may come before the handshake is complete."""
        if isinstance(event, events.ProtocolNegotiated):
            self.http = H3Connection(self.connection)
        for each in () if self.http is None else self.http.handle_event(event):
            if not isinstance(each, DataReceived | HeadersReceived) or each.stream_id not in self.open:
                continue
            of = self.open[each.stream_id]
            if isinstance(each, DataReceived) and each.data:
                self.last_ns = now_ns()
                of[2] += len(each.data)
                self.bytes += len(each.data)
                if self.bin_ns:
                    number = self.last_ns // self.bin_ns
                    self.bins[number] = self.bins.get(number, 0) + len(each.data)
            if each.stream_ended:
                number, start_ns, size = self.open.pop(each.stream_id)
                self.objects.append(
                    {"number": number, "start_ns": start_ns, "duration_ns": now_ns() - start_ns, "bytes": size}
                )

    def record(self) -> dict[str, Any]:
        """As of each end, with its own."""
        bins = [{"number": number, "arrived": None, "delivered": size} for number, size in self.bins.items()]
        volume = None if self.count is None else self.volume
        own = {"bytes": self.bytes, "volume": volume, "bins": bins}
        return super().record() | own | {"objects": sorted(self.objects, key=lambda each: each["number"])}
