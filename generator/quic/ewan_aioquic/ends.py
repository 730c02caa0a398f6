"""The two ends of a transfer: the client, which connects, and the server. Each waits for packets and timers.

In: the command line, and what makes a peer of a connection. Out: the connections' parts of the record."""

from __future__ import annotations

import argparse
import datetime
import select
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aioquic.buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger
from aioquic.quic.packet import QuicPacketType, pull_quic_header
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .clock import BEGUN_NS, NS_PER_SECOND, OFFSET_NS, now_ns
from .peer import LINGER_NS, Peer

NAME = "ewan"
SO_RCVBUFFORCE = 33
ID_BYTES = 8
IDLE_S = 30.0
LONG_S = 86_400.0
"""The end that has the shorter time decides. An application that limits its sender may be silent for long."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)

Make = Callable[[QuicConnection, socket.socket, int, QuicLogger | None], Peer]
"""Makes the peer of a connection, of which the socket, the number and the log are given."""


class StoppedError(Exception):
    """A signal came."""


def connect(given: argparse.Namespace, end: str, protocols: Sequence[str], make: Make) -> list[dict[str, Any]]:
    """A connection for each of these protocols, each with a socket of its own."""
    begin_ns = BEGUN_NS + given.after_ns if given.at_ns is None else given.at_ns
    ready = []
    port = given.port if given.own_port else 0
    for stream, protocol in enumerate(protocols):
        settings = configuration(given, [protocol], is_client=True)
        sock = opened("::" if ":" in given.address else "", port, given.buffer)
        ready.append((QuicConnection(configuration=settings), sock, stream, settings.quic_logger))
    time.sleep(max(0, begin_ns - now_ns()) / NS_PER_SECOND)
    peers = [make(*each) for each in ready]
    end_ns = None if given.for_ns is None else begin_ns + given.for_ns
    samples = Samples(given.sample_ns)
    try:
        for peer in peers:
            peer.connection.connect((given.address, given.port), time.monotonic())
            peer.push()
        while any(not peer.over for peer in peers):
            ends = [peer.ended_ns + LINGER_NS for peer in peers if peer.closed and peer.ended_ns and not peer.over]
            came = wait([peer.socket for peer in peers if not peer.over], peers, [samples.due_ns, end_ns, *ends])
            for peer in peers:
                if peer.socket in came:
                    for data, address in come(peer.socket):
                        peer.take(data, address)
                peer.tick()
                peer.look()
                peer.work()
                if end_ns is not None and now_ns() >= end_ns:
                    peer.error = peer.error or ("ended before it was connected" if peer.connected_ns is None else None)
                    peer.close()
                peer.push()
            if end_ns is not None and now_ns() >= end_ns:
                end_ns = None
            samples.take(peers)
    except StoppedError:
        for peer in peers:
            peer.close()
            peer.push()
    return _records(peers, end)


def accept(given: argparse.Namespace, end: str, protocols: Sequence[str], make: Make) -> list[dict[str, Any]]:
    """Until as many connections have ended as there are protocols."""
    own, key = certificate()
    sock = opened(given.address, given.port, given.buffer)
    peers: dict[Any, Peer] = {}
    samples = Samples(given.sample_ns)
    try:
        while len(peers) < len(protocols) or any(not peer.terminated for peer in peers.values()):
            for each in wait([sock], peers.values(), [samples.due_ns]):
                for data, address in come(each):
                    peer = peers.get(address)
                    if peer is None and (first := _first(data)) is not None and len(peers) < len(protocols):
                        settings = configuration(given, protocols, is_client=False)
                        settings.certificate, settings.private_key = own, key
                        made = QuicConnection(configuration=settings, original_destination_connection_id=first)
                        peer = peers[address] = make(made, sock, 0, settings.quic_logger)
                    if peer is not None:
                        peer.take(data, address)
            for peer in peers.values():
                peer.tick()
                peer.look()
                peer.work()
                peer.push()
            samples.take(peers.values())
    except StoppedError:
        pass
    return _records(sorted(peers.values(), key=lambda peer: peer.stream), end)


class Samples:
    """Notes the state of peers at each multiple of an interval from T0; never where it is 0."""

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self.due_ns = self._next()

    def _next(self) -> int | None:
        return (now_ns() // self._every_ns + 1) * self._every_ns if self._every_ns else None

    def take(self, peers: Iterable[Peer]) -> None:
        """Notes it if its time has come."""
        if self.due_ns is not None and now_ns() >= self.due_ns:
            for peer in peers:
                peer.sample()
            self.due_ns = self._next()


def _records(peers: Sequence[Peer], end: str) -> list[dict[str, Any]]:
    """The record of each; signals are ignored from now on, for what is left is to write what is known."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for peer in peers:
        peer.write_log(end)
    return [peer.record() for peer in peers]


def wait(sockets: Iterable[socket.socket], peers: Iterable[Peer], times: Iterable[int | None]) -> list[socket.socket]:
    """Until something came, a timer of the library or work is due, or one of these times has come."""
    own = [peer for peer in peers if not peer.terminated]
    timers = [timer for peer in own if (timer := peer.timer()) is not None]
    due = [*times, *(peer.due_ns() for peer in own)]
    timers += [(due_ns - OFFSET_NS) / NS_PER_SECOND for due_ns in due if due_ns is not None]
    left = None if not timers else max(0.0, min(timers) - time.monotonic())
    # select.select takes microseconds; a timer that is not reached yet is waited for again.
    ready, _, _ = select.select(list(sockets), [], [], left)
    return ready


def opened(address: str, port: int, buffer_bytes: int) -> socket.socket:
    """A socket at an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    result = socket.socket(family, socket.SOCK_DGRAM)
    try:
        result.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, buffer_bytes)
    except OSError:
        result.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    result.bind((address, port))
    return result


def come(sock: socket.socket) -> Iterable[tuple[bytes, Any]]:
    """All that waits in a socket."""
    while True:
        try:
            yield sock.recvfrom(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            continue  # an ICMP error, where no program listens there


def configuration(given: argparse.Namespace, protocols: Sequence[str], *, is_client: bool) -> QuicConfiguration:
    """The settings that both ends share."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=list(protocols),
        congestion_control_algorithm=given.congestion,
        server_name=NAME,
        verify_mode=ssl.CERT_NONE,
        max_data=given.window,
        max_stream_data=given.window,
        idle_timeout=IDLE_S if is_client and not given.writes else LONG_S,
        quic_logger=QuicLogger() if given.qlog == "on" else None,
    )


def certificate() -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """A certificate of its own, which has the same size each time."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    begin, end = datetime.datetime(2000, 1, 1), datetime.datetime(2100, 1, 1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end)
    return builder.sign(key, None), key


def _first(data: bytes) -> bytes | None:
    """The connection ID of the first packet of a connection; None for any other packet."""
    try:
        header = pull_quic_header(Buffer(data=data), host_cid_length=ID_BYTES)
    except ValueError:
        return None
    return header.destination_cid if header.packet_type == QuicPacketType.INITIAL else None
