"""One connection: what comes from its socket, what the library sends, its counters, and its state over time."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aioquic.quic import events
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger

from .clock import NS_PER_SECOND, now_ns

LINGER_NS = NS_PER_SECOND
"""The time for which an end that closed a connection answers."""


class Peer:
    """One connection of either end, with its counters. `stream`: its number in the transfer. What it does is for the
    classes that derive from it, which have the methods `event`, `work` and `due_ns`."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, stream: int, logger: QuicLogger | None) -> None:
        self.connection, self.socket, self.stream, self.logger = connection, sock, stream, logger
        self.started_ns = now_ns()
        self.connected_ns: int | None = None
        self.ended_ns: int | None = None
        self.last_ns: int | None = None
        self.error: str | None = None
        self.terminated = self.closed = False
        self.samples: list[dict[str, Any]] = []
        self.sent, self.sent_bytes, self.received, self.received_bytes, self.lost = 0, 0, 0, 0, 0
        self.loss = connection._loss
        lose = self.loss._on_packets_lost

        def counted(*, packets: Iterable[Any], **more: Any) -> None:
            packets = tuple(packets)
            self.lost += len(packets)
            lose(packets=packets, **more)

        self.loss._on_packets_lost = counted

    def take(self, data: bytes, address: Any) -> None:
        """A datagram that came."""
        self.received += 1
        self.received_bytes += len(data)
        self.connection.receive_datagram(data, address, time.monotonic())

    def push(self) -> None:
        """Sends what may be sent now."""
        for data, address in self.connection.datagrams_to_send(time.monotonic()):
            try:
                self.socket.sendto(data, address)
            except OSError as wrong:
                self.error = self.error or f"sending: {wrong.strerror}"
            self.sent += 1
            self.sent_bytes += len(data)

    def look(self) -> None:
        """Takes the events of the library."""
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, events.HandshakeCompleted):
                self.connected_ns = now_ns()
                self.stream = stream_of(event.alpn_protocol)
            elif isinstance(event, events.ConnectionTerminated):
                self.terminated = True
                self.ended_ns = self.ended_ns or now_ns()
                if event.error_code or self.connected_ns is None:
                    self.error = self.error or event.reason_phrase or f"error {event.error_code}"
            else:
                self.event(event)

    def event(self, event: events.QuicEvent) -> None:
        """Takes an event that one end waits for."""

    def work(self) -> None:
        """Gives the library what there is to be sent."""

    def due_ns(self) -> int | None:
        """The time at which there is work again, None where only what comes makes work."""

    @property
    def over(self) -> bool:
        """Return whether the peer knows of the end, or has had its time to ask."""
        return self.terminated or (self.closed and now_ns() >= (self.ended_ns or 0) + LINGER_NS)

    def close(self) -> None:
        """The end, whatever is in flight."""
        if not self.closed:
            self.sample()
            self.closed, self.ended_ns = True, now_ns()
            self.connection.close()

    def sample(self) -> None:
        """Notes the state."""
        loss = self.loss
        if self.connected_ns is None or self.closed:
            return
        self.samples.append(
            {
                "time_ns": now_ns(),
                "cwnd_bytes": loss.congestion_window,
                "ssthresh_bytes": loss._cc.ssthresh,
                "in_flight_bytes": loss.bytes_in_flight,
                "pacing_bps": round(8 * self.connection._max_datagram_size / loss._pacer.packet_time)
                if loss._pacer.packet_time
                else None,
                "srtt_ns": _ns(loss._rtt_smoothed),
                "rttvar_ns": _ns(loss._rtt_variance),
                "mtu_bytes": self.connection._max_datagram_size,
                "sent_packets": self.connection._packet_number,
                "lost_packets": self.lost,
                "congestion_events": None,
            }
        )

    def timer(self) -> float | None:
        """When the library wants to be called, in its own seconds."""
        timer: float | None = self.connection.get_timer()
        return timer

    def tick(self) -> None:
        """Calls the library where its time has come."""
        timer = self.timer()
        if timer is not None and timer <= time.monotonic():
            self.connection.handle_timer(time.monotonic())

    def record(self) -> dict[str, Any]:
        """The connection's part of the record."""
        loss = self.loss
        return {
            "stream": self.stream,
            "started_ns": self.started_ns,
            "connected_ns": self.connected_ns,
            "ended_ns": self.ended_ns or now_ns(),
            "last_ns": self.last_ns,
            "error": self.error,
            "udp_sent": {"datagrams": self.sent, "bytes": self.sent_bytes},
            "udp_received": {"datagrams": self.received, "bytes": self.received_bytes},
            "sent_packets": self.connection._packet_number,
            "lost_packets": self.lost,
            "congestion_events": None,
            "min_rtt_ns": _ns(loss._rtt_min) if loss._rtt_initialized else None,
            "payload_bytes": self.connection._max_datagram_size,
        }

    def write_log(self, end: str) -> None:
        """Its qlog, whose name has its stream."""
        if self.logger is not None:
            path = Path(os.environ.get("EWAN_OUT", ".")) / f"{end}-{self.stream}.qlog"
            path.write_text(json.dumps(self.logger.to_dict()))


def protocol(stream: int) -> str:
    """The protocol of a stream of a transfer: by this name the receiver knows which connection is which."""
    return f"ewan-bulk-{stream}"


def stream_of(name: str | None) -> int:
    """The stream of a protocol's name; another protocol has one connection."""
    _, found, number = (name or "").partition("ewan-bulk-")
    return int(number) if found else 0


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_SECOND)
