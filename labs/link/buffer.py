"""Converts the buffer that a description writes into a limit in packets or in bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

from ewan.labs.base.units import Buffer, Rate, Size, bdp_bytes, bytes_in
from ewan.labs.link.context import LinkContext

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings


class Room(NamedTuple):
    """The limits of a direction's queue, and their size in bytes of the largest packet."""

    limit_packets: int | None
    limit_bytes: int | None
    bytes: int


def room_of(buffer: Buffer, key: str, way: DirectionSettings, at: LinkContext, packet: int) -> Room:
    """The limits of a buffer; DescriptionError, at this key, for less than one of the largest packet."""
    packets, size = buffer_limits(buffer, way.rate, at.longest_rtt_ns)
    held = size if size is not None else (packets or 0) * packet
    if held < packet:
        holds = "no packet" if packets == 0 else f"{Size(held)}, less than one packet of {Size(packet)}"
        raise at.error(way, key, f'holds {holds}: write at least "1pkt"', buffer)
    return Room(packets, size, held)


def buffer_limits(buffer: Buffer, rate: Rate, longest_rtt_ns: int) -> tuple[int | None, int | None]:
    """A buffer as a limit in packets or in bytes."""
    match buffer.unit:
        case "packets":
            return buffer.amount, None
        case "bytes":
            return None, buffer.amount
        case "ns":
            return None, bytes_in(rate.bps, buffer.amount)
        case "millibdp":
            return None, bdp_bytes(rate.bps, longest_rtt_ns, buffer.amount)
        case _:
            assert_never(buffer.unit)
