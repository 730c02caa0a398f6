"""The TCP connections of network namespaces, as their kernel tells them (sock_diag(7), `struct tcp_info`).

In: names of namespaces. Out: of each connection its ends and what TCP knows of it at that moment. A netlink socket is
opened in each namespace once; asking it takes some tens of microseconds and starts no program. Needs root.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_US
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.namespaces import NAMESPACES, Identity, identity_of

CLONE_NEWNET = 0x40000000
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
INET_DIAG_INFO, INET_DIAG_CONG = 2, 4
ESTABLISHED, FIN_WAIT_1, CLOSE_WAIT = 1, 4, 8
STATES = 1 << ESTABLISHED | 1 << FIN_WAIT_1 | 1 << CLOSE_WAIT
"""Connections over which something may still be sent."""
HEADER = struct.Struct("=IHHII")
MESSAGE = struct.Struct("=4B2s2s16s16sI8s5I")
ATTRIBUTE = struct.Struct("=HH")
INFO_BYTES = 256
"""Longer than any kernel's; what an older one does not know is 0."""
NO_RTT_US = 0xFFFFFFFF
ANSWER_S = 2.0
MOST = 2000
"""Connections of one namespace that are reported."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """A connection at one moment. `cookie` names its socket in its namespace."""

    cookie: str
    local: Address
    local_port: int
    remote: Address
    remote_port: int
    congestion: str
    segment_bytes: int
    cwnd_segments: int
    rtt_ns: int
    min_rtt_ns: int | None
    retransmitted_segments: int
    acked_bytes: int
    received_bytes: int
    delivery_rate_bps: int


class Namespaces:
    """Asks these namespaces again and again; `close` ends it. LabError where one cannot be entered."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._sockets: dict[str, socket.socket] = {}
        self._entered: dict[Path, Identity | None] = {}
        self._error: str | None = None
        thread = threading.Thread(target=self._open, args=(names,))  # only it enters them, and ends
        thread.start()
        thread.join()
        if self._error is not None:
            self.close()
            raise LabError(self._error)

    def _open(self, names: Mapping[str, str]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        for key, name in names.items():
            path = NAMESPACES / name
            try:
                namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    self._entered[path] = identity_of(path)
                    if libc.setns(namespace, CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                finally:
                    os.close(namespace)
                asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
                asked.settimeout(ANSWER_S)
                self._sockets[key] = asked
            except PermissionError:
                self._error = f"entering {name} needs root"
                return
            except OSError as error:
                self._error = f"{_shown(path)}: {error.strerror}"
                return

    def ask(self) -> Iterator[tuple[str, list[ConnectionState]]]:
        """The connections of each namespace, each as it is given. LabError where one is gone, which would stay while it
        is asked."""
        for path, entered in self._entered.items():
            if identity_of(path) != entered:
                raise LabError(f"{_shown(path)} is gone")
        try:
            for key, own in self._sockets.items():
                yield key, list(_dumped(own))
        except OSError as error:
            raise LabError(f"asking the kernel for TCP connections: {error}") from None

    def close(self) -> None:
        """Closes the sockets."""
        for own in self._sockets.values():
            own.close()
        self._sockets = {}


def _shown(path: Path) -> str:
    return f"network namespace {path.name}"


def _dumped(asked: socket.socket) -> Iterator[ConnectionState]:
    found = 0
    for family in (socket.AF_INET, socket.AF_INET6):
        asked.send(request(family))
        done = False
        while not done:
            told, done = read(asked.recv(1 << 16))
            for each in told:
                found += 1
                if found <= MOST:
                    yield each


def request(family: int) -> bytes:
    """Asks for all TCP connections of a family."""
    extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
    wanted = struct.pack("=4BI48x", family, socket.IPPROTO_TCP, extensions, 0, STATES)
    length = HEADER.size + len(wanted)
    return HEADER.pack(length, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + wanted


def read(answer: bytes) -> tuple[list[ConnectionState], bool]:
    """The connections of one part of an answer, and whether it was the last. OSError for a refusal."""
    found: list[ConnectionState] = []
    at = 0
    while at + HEADER.size <= len(answer):
        length, kind, _, _, _ = HEADER.unpack_from(answer, at)
        if kind == NLMSG_DONE:
            return found, True
        if kind == NLMSG_ERROR:
            number = -int(struct.unpack_from("=i", answer, at + HEADER.size)[0])
            raise OSError(number, os.strerror(number))
        if length < HEADER.size:
            raise OSError("the answer is no whole one")
        found.append(_told(answer[at + HEADER.size : at + length]))
        at += -(-length // 4) * 4
    return found, False


def _told(message: bytes) -> ConnectionState:
    family, _, _, _, local_port, remote_port, local, remote, _, cookie, *_ = MESSAGE.unpack_from(message)
    info, congestion = bytes(INFO_BYTES), ""
    at = MESSAGE.size
    while at + ATTRIBUTE.size <= len(message):
        length, kind = ATTRIBUTE.unpack_from(message, at)
        if length < ATTRIBUTE.size:
            break
        value = message[at + ATTRIBUTE.size : at + length]
        if kind == INET_DIAG_INFO:
            info = value.ljust(INFO_BYTES, b"\0")
        elif kind == INET_DIAG_CONG:
            congestion = value.rstrip(b"\0").decode(errors="replace")
        at += -(-length // 4) * 4

    def word(place: int) -> int:
        return int.from_bytes(info[place : place + 4], "little")

    def long(place: int) -> int:
        return int.from_bytes(info[place : place + 8], "little")

    return ConnectionState(
        cookie=cookie.hex(),
        local=_address(family, local),
        local_port=int.from_bytes(local_port, "big"),
        remote=_address(family, remote),
        remote_port=int.from_bytes(remote_port, "big"),
        congestion=congestion,
        segment_bytes=word(16),
        cwnd_segments=word(80),
        rtt_ns=word(68) * NS_PER_US,
        min_rtt_ns=None if word(148) == NO_RTT_US else word(148) * NS_PER_US,
        retransmitted_segments=word(100),
        acked_bytes=long(120),
        received_bytes=long(128),
        delivery_rate_bps=long(160) * BITS_PER_BYTE,
    )


def _address(family: int, data: bytes) -> Address:
    if family == socket.AF_INET:
        return ipaddress.IPv4Address(data[:4])
    found = ipaddress.IPv6Address(data)
    return found.ipv4_mapped or found
