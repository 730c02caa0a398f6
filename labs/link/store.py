"""The memory of a direction: room for all that its queue and its delay line may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ewan.labs.base.units import Duration, Size, bytes_in
from ewan.labs.link.context import LinkContext
from ewan.labs.link.framing import ETHERNET_HEADER, framed, framing_of
from ewan.labs.link.queue import Queue, queue_limits

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings

SMALLEST_IP = 28  # an IPv4 header and a UDP header: the smallest packet that fills a store
LARGEST_STORE = Size.parse("8GiB")
PLAIN_STORE_PACKETS = 1 << 20
MEAN_PACKET = 256  # beyond a million packets, a store has room for packets of this size on average
SLACK_PACKETS = 256


def compile_store(
    way: DirectionSettings, at: LinkContext, queue: Queue, longest_ns: int, burst_bytes: int
) -> tuple[int, int]:
    """Packets if all are small, bytes if all are large; `longest_ns` is the longest delay, `burst_bytes` what may
    enter the delay line at once."""
    framing, rate = framing_of(way), way.rate
    largest, smallest = framed(framing, at.mtu), framed(framing, SMALLEST_IP)
    line = bytes_in(rate.bps, longest_ns) + burst_bytes
    limits = [(each.limit_packets, each.limit_bytes) for each in queue_limits(queue)]
    waiting = sum(size if size is not None else (packets or 0) * largest for packets, size in limits)
    small = line // smallest + sum(packets or (size or 0) // smallest for packets, size in limits)
    packets = min(small, max(PLAIN_STORE_PACKETS, (line + waiting) // MEAN_PACKET)) + SLACK_PACKETS
    header = max(0, ETHERNET_HEADER - framing.overhead_bytes)  # stored, though the framing does not count it
    room = line + waiting
    size = room + header * (room // smallest) + SLACK_PACKETS * (at.mtu + ETHERNET_HEADER)
    if size > LARGEST_STORE.bytes:
        message = (
            f"{at.link} must hold {rate} × {Duration(longest_ns)} = {Size(line)} in flight and {Size(waiting)} "
            f"in its buffer, more than {Size(LARGEST_STORE.bytes)}: write a lower rate, delay or buffer"
        )
        raise at.error(way, "rate", message, rate)
    return packets, size
