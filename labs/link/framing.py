"""The length that a packet counts on a link, and its serialisation time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ewan.labs.base.codec import Struct
from ewan.labs.base.units import Duration, Size, time_for
from ewan.labs.link.context import LinkContext
from ewan.labs.traces import Opportunities

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings


class Framing(Struct):
    """The length that a packet counts: max(bytes of the IP packet + overhead, minimum)."""

    overhead_bytes: int
    minimum_bytes: int


def framing_words(framing: Framing) -> str:
    """The framing's name as a description writes it, or the bytes that it adds."""
    names = {38: "wire", 18: "ethernet", 14: "header", 0: "ip"}
    return names.get(framing.overhead_bytes, f"+{framing.overhead_bytes}B")


FRAMING = {"wire": Framing(38, 84), "ethernet": Framing(18, 64), "header": Framing(14, 0), "ip": Framing(0, 0)}


ETHERNET_HEADER = 14


SLOWEST_PACKET = Duration.parse("10s")


def framing_of(way: DirectionSettings) -> Framing:
    """As written; else what a wire carries, or the IP packets that mahimahi counts."""
    return FRAMING[way.written.framing or ("ip" if isinstance(way.traced("rate"), Opportunities) else "wire")]


def framed(framing: Framing, ip_bytes: int) -> int:
    """The bytes that an IP packet of `ip_bytes` counts."""
    return max(ip_bytes + framing.overhead_bytes, framing.minimum_bytes)


def packet_time(way: DirectionSettings, mtu: int) -> int:
    """Nanoseconds that the largest packet takes on a link, rounded up."""
    return time_for(framed(framing_of(way), mtu), way.rate.bps)


def check_rate(way: DirectionSettings, at: LinkContext) -> None:
    """Refuses a rate at which one packet takes longer than `SLOWEST_PACKET`."""
    took = packet_time(way, at.mtu)
    if took > SLOWEST_PACKET.ns:
        packet = Size(framed(framing_of(way), at.mtu))
        message = f"one packet of {packet} takes {Duration(took)} on {at.link}: write a smaller mtu or a higher rate"
        raise at.error(way, "rate", message, way.rate)
