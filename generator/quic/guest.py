"""ewan-aioquic: one transfer by QUIC, over the library aioquic; the same command line and the same record as ewan-quic.

In: the command line, which src/arguments.rs describes, and EWAN_T0_UNIX_NS and EWAN_OUT of the environment; SIGTERM or
SIGINT ends it early. Out: one line of JSON on standard output; exit status 1, with one line on standard error, where
there was no transfer. Times are ns from T0. aioquic keeps no clock and no socket: this program waits for packets and
timers, to the microsecond. Some of what is counted is private to aioquic, whose version is pinned for that.
generator/quic/aioquic.sh puts it, with the Python that has aioquic, beside ewan-quic."""

import os
import time

BEGUN_NS = time.time_ns() - int(os.environ.get("EWAN_T0_UNIX_NS") or time.time_ns())
OFFSET_NS = BEGUN_NS - time.monotonic_ns()

import argparse  # noqa: E402
import datetime  # noqa: E402
import json  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import ssl  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterable  # noqa: E402
from pathlib import Path  # noqa: E402
from types import FrameType  # noqa: E402
from typing import Any, NoReturn  # noqa: E402

from aioquic.buffer import Buffer  # noqa: E402
from aioquic.quic import events  # noqa: E402
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402
from aioquic.quic.connection import QuicConnection  # noqa: E402
from aioquic.quic.logger import QuicLogger  # noqa: E402
from aioquic.quic.packet import QuicPacketType, pull_quic_header  # noqa: E402
from cryptography import x509  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402

NS_PER_SECOND = 10**9
NAME = "ewan"
CONGESTION = ("reno", "cubic")
WINDOW_BYTES = 64_000_000
BUFFER_BYTES = 8_000_000
SO_RCVBUFFORCE = 33
LINGER_NS = NS_PER_SECOND
"""The time for which a sender answers after its end."""
ID_BYTES = 8
SIGNALS = (signal.SIGTERM, signal.SIGINT)
LEAST_WAITING_BYTES = 1 << 20
"""Bytes that wait to be sent or acknowledged at least, where there are so many."""
CHUNK_BYTES = 1 << 16


def now_ns() -> int:
    """ns from T0."""
    return time.monotonic_ns() + OFFSET_NS


def fail(what: str) -> NoReturn:
    """One line, and the end."""
    print(f"ewan-aioquic: {what}", file=sys.stderr)
    sys.exit(1)


class StoppedError(Exception):
    """A signal came."""


class Peer:
    """One connection of either end, with its counters. `stream`: its number in the transfer."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, stream: int, logger: QuicLogger | None) -> None:
        self.connection, self.socket, self.stream, self.logger = connection, sock, stream, logger
        self.started_ns = now_ns()
        self.connected_ns: int | None = None
        self.ended_ns: int | None = None
        self.last_ns: int | None = None
        self.error: str | None = None
        self.terminated = False
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
                self.stream = int((event.alpn_protocol or "-0").rpartition("-")[2])
            elif isinstance(event, events.ConnectionTerminated):
                self.terminated = True
                self.ended_ns = self.ended_ns or now_ns()
                if event.error_code or self.connected_ns is None:
                    self.error = self.error or event.reason_phrase or f"error {event.error_code}"
            else:
                self.event(event)

    def event(self, event: events.QuicEvent) -> None:
        """Takes an event that one end waits for."""

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


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_SECOND)


class Sender(Peer):
    """Fills a stream of its own. `volume` None: without an end."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, stream: int, logger: QuicLogger | None,
                 volume: int | None) -> None:  # fmt: skip
        super().__init__(connection, sock, stream, logger)
        self.volume, self.written, self.number, self.whole, self.closed = volume, 0, -1, False, False
        self.sender: Any = None
        self.samples: list[dict[str, Any]] = []

    @property
    def over(self) -> bool:
        """Return whether the peer knows of the end, or has had its time to ask."""
        return self.terminated or (self.closed and now_ns() >= (self.ended_ns or 0) + LINGER_NS)

    def fill(self) -> None:
        """Keeps enough in the library's buffer, and closes the connection when all is acknowledged."""
        if self.connected_ns is None or self.closed:
            return
        if self.number < 0:
            self.number = self.connection.get_next_available_stream_id(is_unidirectional=True)
            self.write(b"")
            self.sender = self.connection._streams[self.number].sender
        most = max(LEAST_WAITING_BYTES, 2 * self.loss.congestion_window)
        while not self.whole and self.written - self.sender._buffer_start < most:
            left = CHUNK_BYTES if self.volume is None else min(CHUNK_BYTES, self.volume - self.written)
            self.written += left
            self.whole = self.written == self.volume
            self.write(bytes(left))
        if self.sender.is_finished:
            self.last_ns = now_ns()
            self.close()

    def write(self, data: bytes) -> None:
        """A piece of zeros."""
        self.connection.send_stream_data(self.number, data, end_stream=self.whole)

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

    def record(self) -> dict[str, Any]:
        """As of each end, with its own."""
        return super().record() | {"bytes": self.written, "samples": self.samples}


class Receiver(Peer):
    """Counts what arrives at all, and what a program may have in order, in bins."""

    def __init__(self, connection: QuicConnection, sock: socket.socket, logger: QuicLogger | None, bin_ns: int) -> None:
        super().__init__(connection, sock, 0, logger)
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


def wait(sockets: Iterable[socket.socket], peers: Iterable[Peer], until_ns: int | None) -> list[socket.socket]:
    """Until something came, a timer of the library is due, or this time has come."""
    timers = [timer for peer in peers if (timer := peer.timer()) is not None and not peer.terminated]
    if until_ns is not None:
        timers.append((until_ns - OFFSET_NS) / NS_PER_SECOND)
    left = None if not timers else max(0.0, min(timers) - time.monotonic())
    # select.select takes microseconds; a timer that is not reached yet is waited for again.
    ready, _, _ = select.select(list(sockets), [], [], left)
    return ready


def opened(address: str, port: int | None, buffer_bytes: int) -> socket.socket:
    """A socket; of a receiver at its address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    result = socket.socket(family, socket.SOCK_DGRAM)
    try:
        result.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, buffer_bytes)
    except OSError:
        result.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    result.bind(("::" if port is None and ":" in address else "" if port is None else address, port or 0))
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


def configuration(given: argparse.Namespace, streams: Iterable[int], *, is_client: bool) -> QuicConfiguration:
    """The settings that both ends share."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=[f"ewan-bulk-{stream}" for stream in streams],
        congestion_control_algorithm=given.congestion,
        server_name=NAME,
        verify_mode=ssl.CERT_NONE,
        max_data=given.window,
        max_stream_data=given.window,
        idle_timeout=30.0,
        quic_logger=QuicLogger() if given.qlog == "on" else None,
    )


def send(given: argparse.Namespace) -> list[dict[str, Any]]:
    """All connections of a sender, each with a socket of its own."""
    begin_ns = BEGUN_NS + given.after_ns if given.at_ns is None else given.at_ns
    volumes: list[int | None] = given.bytes or [None] * given.streams
    ready = []
    for stream, volume in enumerate(volumes):
        settings = configuration(given, [stream], is_client=True)
        sock = opened(given.address, None, given.buffer)
        ready.append((QuicConnection(configuration=settings), sock, stream, settings.quic_logger, volume))
    time.sleep(max(0, begin_ns - now_ns()) / NS_PER_SECOND)
    peers = [Sender(*each) for each in ready]
    end_ns = None if given.for_ns is None else begin_ns + given.for_ns
    sample_ns = given.sample_ns and (now_ns() // given.sample_ns + 1) * given.sample_ns
    try:
        for peer in peers:
            peer.connection.connect((given.address, given.port), time.monotonic())
            peer.push()
        while any(not peer.over for peer in peers):
            ends = [peer.ended_ns + LINGER_NS for peer in peers if peer.closed and peer.ended_ns and not peer.over]
            times = [due for due in (sample_ns, end_ns, *ends) if due]
            came = wait([peer.socket for peer in peers if not peer.over], peers, min(times, default=None))
            for peer in peers:
                if peer.socket in came:
                    for data, address in come(peer.socket):
                        peer.take(data, address)
                peer.tick()
                peer.look()
                peer.fill()
                if end_ns is not None and now_ns() >= end_ns:
                    peer.error = peer.error or ("ended before it was connected" if peer.connected_ns is None else None)
                    peer.close()
                peer.push()
            if end_ns is not None and now_ns() >= end_ns:
                end_ns = None
            if sample_ns and now_ns() >= sample_ns:
                for peer in peers:
                    peer.sample()
                sample_ns = (now_ns() // given.sample_ns + 1) * given.sample_ns
    except StoppedError:
        for peer in peers:
            peer.close()
            peer.push()
    deaf()
    for peer in peers:
        peer.write_log("send")
    return [peer.record() for peer in peers]


def certificate() -> tuple[x509.Certificate, Ed25519PrivateKey]:
    """A certificate of its own, which has the same size each time."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    begin, end = datetime.datetime(2000, 1, 1), datetime.datetime(2100, 1, 1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end)
    return builder.sign(key, None), key


def receive(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Until as many connections have ended as the transfer has."""
    own, key = certificate()
    sock = opened(given.address, given.port, given.buffer)
    peers: dict[Any, Receiver] = {}
    try:
        while len(peers) < given.streams or any(not peer.terminated for peer in peers.values()):
            for each in wait([sock], peers.values(), None):
                for data, address in come(each):
                    peer = peers.get(address)
                    if peer is None and (first := _first(data)) is not None and len(peers) < given.streams:
                        settings = configuration(given, range(given.streams), is_client=False)
                        settings.certificate, settings.private_key = own, key
                        made = QuicConnection(configuration=settings, original_destination_connection_id=first)
                        peer = peers[address] = Receiver(made, sock, settings.quic_logger, given.bin_ns)
                    if peer is not None:
                        peer.take(data, address)
            for peer in peers.values():
                peer.tick()
                peer.look()
                peer.push()
    except StoppedError:
        pass
    deaf()
    found = sorted(peers.values(), key=lambda peer: peer.stream)
    for peer in found:
        peer.write_log("receive")
    return [peer.record() for peer in found]


def _first(data: bytes) -> bytes | None:
    """The connection ID of the first packet of a connection; None for any other packet."""
    try:
        header = pull_quic_header(Buffer(data=data), host_cid_length=ID_BYTES)
    except ValueError:
        return None
    return header.destination_cid if header.packet_type == QuicPacketType.INITIAL else None


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="ewan-aioquic", allow_abbrev=False)
    parser.add_argument("end", choices=("send", "receive"))
    parser.add_argument("--address", required=True)
    parser.add_argument("--congestion", choices=CONGESTION, default="cubic")
    parser.add_argument("--qlog", choices=("on", "off"), default="off")
    parser.add_argument("--bytes", type=int, action="append")
    parser.add_argument("--for-ns", type=int)
    parser.add_argument("--at-ns", type=int)
    defaults = {"port": None, "streams": 1, "after-ns": 0, "bin-ns": 0, "sample-ns": 0}
    for name, usual in (defaults | {"window": WINDOW_BYTES, "buffer": BUFFER_BYTES}).items():
        parser.add_argument(f"--{name}", type=int, default=usual, required=name == "port")
    given = parser.parse_args()
    if given.bytes and len(given.bytes) != given.streams:
        fail("--bytes: write it once for each of --streams")
    return given


def deaf() -> None:
    """Ignores signals from now on: what is left is to write what is known."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """The transfer of this command line."""

    def ended(number: int, frame: FrameType | None) -> NoReturn:
        raise StoppedError

    given = arguments()
    for number in SIGNALS:
        signal.signal(number, ended)
    try:
        streams = send(given) if given.end == "send" else receive(given)
    except OSError as wrong:
        fail(f"{given.address}: {wrong.strerror}")
    except StoppedError:
        fail("ended before it began")
    record = {"format": "ewan-quic/1", "end": given.end, "library": "aioquic", "begun_ns": BEGUN_NS}
    print(json.dumps(record | {"streams": streams}))


if __name__ == "__main__":
    main()
