"""Selects the queue at the exit of a host, router or switch: an access link's card, or a queue before an emulator.

Comes in: the settings of a link's direction, and the clock. Goes out: an interface's `egress`. In the virtual clock
a host's is psp: exact timing synchronises flows in ways that life does not (phase effects; Floyd and Jacobson, "On
Traffic Phase Effects in Packet-Switched Gateways", 1992), so each packet waits there for a seeded processing time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ewan.labs.base.codec import replace
from ewan.labs.base.units import Duration, Rate, Size, bytes_in
from ewan.labs.link import Bare, Egress, Fifo, Framing, Psp, Tbf
from ewan.labs.link.buffer import buffer_limits
from ewan.labs.link.context import UINT32
from ewan.labs.link.framing import ETHERNET_HEADER, framed, framing_of
from ewan.labs.link.queue import ACCESS_BUFFER
from ewan.labs.link.settings import DirectionSettings
from ewan.labs.spec import Spec

Clock = Literal["live", "virtual"]

TBF_BURST_NS = 100_000
TBF_BURST_PACKETS = 4
SERVED_LATE_NS = 4_000_000
EXACT_CARD_BPS = Rate.parse("1Gbit/s").bps
"""A router's card that is faster is a token bucket in the virtual clock too: a timer for each packet at 10 Gbit/s makes
a run 6 % slower, and a packet of 1500 bytes takes 1.2 µs there."""
FIFO_PACKETS = 10_000
BARE = Bare()


@dataclass(frozen=True, slots=True)
class _QueueLimits:
    packets: int | None
    bytes: int


class Egresses:
    """Egresses of one lab; `packet_ns` gives each host a packet's time at the bottleneck of its pairs."""

    def __init__(self, spec: Spec, clock: Clock, longest_rtt_ns: int, packet_ns: Mapping[str, int]) -> None:
        self._spec, self._clock, self._longest_rtt_ns, self._packet_ns = spec, clock, longest_rtt_ns, packet_ns
        self._dither = spec.description.dither
        if clock == "live" and isinstance(self._dither, Duration) and self._dither.ns:
            message = "dither is of the virtual clock: leave it out, or choose the virtual runtime"
            raise spec.error(("dither",), message, self._dither)

    def before_emulator(self, node: str, is_host: bool, way: DirectionSettings, mtu: int) -> Egress:
        """The egress of an interface that faces an emulator, which has the rate: packets wait here only while its port
        is full."""
        if self._clock == "virtual" and is_host:
            limits = _QueueLimits(FIFO_PACKETS, FIFO_PACKETS * framed(framing_of(way), mtu))
            return self._psp(node, 0, way, limits)
        return Fifo(FIFO_PACKETS)

    def card(self, node: str, is_host: bool, way: DirectionSettings, mtu: int) -> Egress:
        """A plain access link's rate and queue.

        Exact in the virtual clock, but for a router's fast cards. A token bucket lets a lone packet pass at once: only
        those that follow it closely are held to the rate.
        """
        limits = self._limits(way, mtu)
        rate_bps = way.rate.bps
        if self._clock == "virtual" and is_host:
            return self._psp(node, rate_bps, way, limits)
        if self._clock == "virtual" and rate_bps <= EXACT_CARD_BPS:
            return _exact(rate_bps, framing_of(way), limits)
        return _tbf(way, mtu, limits.bytes)

    def port(self, way: DirectionSettings, mtu: int, at_once: int) -> Psp | Tbf:
        """A link of a switch where hosts meet: to its router, or to another switch. Exact in the virtual clock.

        at_once: how many packets the switch may hand over together. The token bucket passes so many too, but no more
        than in `SERVED_LATE_NS`: a busy machine serves it late, and a smaller one would lose of its rate then.
        """
        limits = self._limits(way, mtu)
        framing = framing_of(way)
        if self._clock == "virtual":
            return _exact(way.rate.bps, framing, limits)
        packets = limits.bytes // framed(framing, mtu)
        # A token bucket's queue counts frames without what the framing adds: as many full packets as are meant.
        burst = min(at_once * framed(framing, mtu), bytes_in(way.rate.bps, SERVED_LATE_NS))
        return _tbf(way, mtu, packets * (mtu + ETHERNET_HEADER), burst)

    def _limits(self, way: DirectionSettings, mtu: int) -> _QueueLimits:
        packet = framed(framing_of(way), mtu)
        buffer = way.written.buffer or ACCESS_BUFFER
        packets, size = buffer_limits(buffer, way.rate, self._longest_rtt_ns)
        limit = size if size is not None else (packets or 0) * packet
        if limit < packet:
            message = f'holds less than one packet of {Size(packet)}: write at least "1pkt"'
            raise self._spec.error(way.path("buffer"), message, buffer)
        if limit > UINT32:
            raise self._spec.error(way.path("buffer"), f'is {Size(limit)}: write at most "4GB"', buffer)
        return _QueueLimits(packets, limit)

    def _psp(self, host: str, rate_bps: int, way: DirectionSettings, limits: _QueueLimits) -> Psp:
        dither_ns = self._dither.ns if isinstance(self._dither, Duration) else self._packet_ns[host]
        seed = hashlib.blake2b(f"{self._spec.description.seed}/{host}/dither".encode(), digest_size=8).digest()
        return _exact(rate_bps, framing_of(way), limits, dither_ns, int.from_bytes(seed, "big"))


Tag = Literal["none", "beside", "inside"]
"""Where the tag of a frame is that leaves an interface: beside it, as Linux keeps it, or among its bytes, as programs
write it to packet sockets."""
TAG_BYTES = 4


def with_tag(egress: Egress, mtu: int, tag: Tag) -> Egress:
    """An egress whose packets are longer by a tag on the wire. The kernel counts only one that is inside."""
    if not isinstance(egress, Psp | Tbf) or tag == "none":
        return egress
    if tag == "beside":
        return replace(egress, overhead_bytes=egress.overhead_bytes + TAG_BYTES)
    full = mtu + ETHERNET_HEADER
    return replace(egress, limit_bytes=egress.limit_bytes // full * (full + TAG_BYTES))


def _exact(rate_bps: int, framing: Framing, limits: _QueueLimits, dither_ns: int = 0, seed: int = 0) -> Psp:
    return Psp(
        rate_bps=rate_bps,
        overhead_bytes=framing.overhead_bytes - ETHERNET_HEADER,
        minimum_bytes=framing.minimum_bytes,
        limit_bytes=min(limits.bytes, UINT32),
        limit_packets=limits.packets,
        dither_ns=dither_ns,
        seed=seed,
    )


def _tbf(way: DirectionSettings, mtu: int, limit_bytes: int, burst_bytes: int = 0) -> Tbf:
    """A token bucket, which passes a burst at once, as a network card does.

    The kernel counts the Ethernet header and at most adds to it: with `framing: ip` the rate is raised so that it
    is exact for full packets.
    """
    framing, bps = framing_of(way), way.rate.bps
    if framing.overhead_bytes < ETHERNET_HEADER:
        bps = bps * (mtu + ETHERNET_HEADER) // (mtu + framing.overhead_bytes)
    return Tbf(
        rate_bps=bps,
        burst_bytes=max(burst_bytes, bytes_in(bps, TBF_BURST_NS), TBF_BURST_PACKETS * framed(framing, mtu)),
        limit_bytes=limit_bytes,
        overhead_bytes=max(0, framing.overhead_bytes - ETHERNET_HEADER),
    )
