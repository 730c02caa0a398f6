"""The headers of many frames, read all at once. Pure.

In: the first bytes of Ethernet frames. Out: columns of addresses, ports and fields of TCP (RFC 791, 8200, 9293, 768). A
field that is not in a frame, or beyond what was kept of it, is null. Extension headers of IPv6 are not followed: the
protocol of such a packet is the header's number."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Truth = NDArray[np.bool_]

_WIDTH = 160
"""Ethernet with two tags, the longest IPv4 header and the longest of TCP."""
_ETHERNET, _TAG = 14, 4
_TAGS = (0x8100, 0x88A8)
_IPV4, _IPV6, _IPV6_HEADER = 0x0800, 0x86DD, 40
_TCP, _UDP, _UDP_HEADER = 6, 17, 8
_TOLD_APART = 16
"""Bytes of a payload that make its digest: those in which generators number their packets."""
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
_PROTOCOLS = {1: "icmp", _TCP: "tcp", _UDP: "udp", 58: "icmpv6"}


def columns(frames: Sequence[bytes]) -> dict[str, pl.Series]:
    """Columns with the names of the table `packets`, from `source` to `payload_bytes`, a value for each frame."""
    return _Headers(frames).columns()


class _Headers:
    def __init__(self, frames: Sequence[bytes]) -> None:
        padded = b"".join(frame[:_WIDTH].ljust(_WIDTH, b"\0") for frame in frames)
        self._bytes = np.frombuffer(padded, dtype=np.uint8).reshape(len(frames), _WIDTH)
        self._rows = np.arange(len(frames))
        self._kept = np.array([min(len(frame), _WIDTH) for frame in frames], dtype=np.int64)

    def _number(self, at: Whole, size: int) -> Whole:
        """The number in `size` bytes, in network order, at a place of each frame."""
        value = np.zeros(len(self._rows), dtype=np.int64)
        for index in range(size):
            value = value << 8 | self._bytes[self._rows, np.minimum(at + index, _WIDTH - 1)]
        return value

    def columns(self) -> dict[str, pl.Series]:
        network = np.full(len(self._rows), _ETHERNET, dtype=np.int64)
        kind = self._number(network - 2, 2)
        for _ in range(2):
            network = np.where(np.isin(kind, _TAGS), network + _TAG, network)
            kind = self._number(network - 2, 2)
        first = self._number(network, 1)
        four = (kind == _IPV4) & (self._kept >= network + 20)
        six = (kind == _IPV6) & (self._kept >= network + _IPV6_HEADER)
        head = np.where(four, (first & 15) * 4, _IPV6_HEADER)
        total = np.where(four, self._number(network + 2, 2), self._number(network + 4, 2) + _IPV6_HEADER)
        protocol = np.where(four, self._number(network + 9, 1), self._number(network + 6, 1))
        # Of a datagram in fragments, only the first one has ports.
        begins = six | (four & (self._number(network + 6, 2) & 0x1FFF == 0))
        transport = network + head
        tcp = begins & (protocol == _TCP) & (self._kept >= transport + 20)
        udp = begins & (protocol == _UDP) & (self._kept >= transport + _UDP_HEADER)
        ports = tcp | udp
        above = np.where(tcp, (self._number(transport + 12, 1) >> 4) * 4, _UDP_HEADER)
        ecn = np.where(four, self._number(network + 1, 1), self._number(network, 2) >> 4) & 3
        return {
            "source": self._addresses(four, six, network + 12, network + 8),
            "source_port": _where(ports, self._number(transport, 2)),
            "destination": self._addresses(four, six, network + 16, network + 24),
            "destination_port": _where(ports, self._number(transport + 2, 2)),
            "protocol": _words(four | six, protocol, _PROTOCOLS),
            "ip_id": _where(four, self._number(network + 4, 2)),
            "ecn": _where(four | six, ecn),
            "tcp_seq": _where(tcp, self._number(transport + 4, 4)),
            "tcp_ack": _where(tcp, self._number(transport + 8, 4)),
            "tcp_flags": _where(tcp, self._number(transport + 13, 1)),
            "payload_bytes": _where(ports, total - head - above),
            "payload_digest": self._digests((four | six) & ~tcp, transport + np.where(udp, above, 0), network + total),
        }

    def _digests(self, those: Truth, begins: Whole, ends: Whole) -> pl.Series:
        """Digests of the first bytes between two places of each frame, where all of them were kept."""
        words = np.zeros((2, len(self._rows)), dtype=np.uint64)
        for index in range(_TOLD_APART):
            # Behind the packet may be padding.
            byte = np.where(begins + index < ends, self._number(begins + index, 1), 0).astype(np.uint64)
            words[index // 8] = words[index // 8] << np.uint64(8) | byte
        kept = self._kept >= np.minimum(begins + _TOLD_APART, ends)
        return _where(those & kept & (begins < ends), (words[0] * _ODD ^ words[1]).view(np.int64))

    def _addresses(self, four: Truth, six: Truth, at_four: Whole, at_six: Whole) -> pl.Series:
        """The addresses as text; each address is formatted once, however many packets have it."""
        texts = np.full(len(self._rows), None, dtype=object)
        for those, at, size in ((four, at_four, 4), (six, at_six, 16)):
            places = at[those, None] + np.arange(size)
            found, which = np.unique(self._bytes[self._rows[those, None], places], axis=0, return_inverse=True)
            written = np.array([str(ipaddress.ip_address(each.tobytes())) for each in found], dtype=object)
            if len(written):
                texts[those] = written[which.ravel()]
        return pl.Series(texts.tolist(), dtype=pl.String())


def _where(there: Truth, values: Whole) -> pl.Series:
    return pl.select(pl.when(pl.Series(there)).then(pl.Series(values))).to_series()


def _words(there: Truth, values: Whole, words: Mapping[int, str]) -> pl.Series:
    found: Mapping[Any, str] = {each: words.get(each, str(each)) for each in np.unique(values).tolist()}
    texts = [found[value] if known else None for value, known in zip(values.tolist(), there.tolist(), strict=True)]
    return pl.Series(texts, dtype=pl.String())
