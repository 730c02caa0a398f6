"""Burstiness of a stream of packets.

In: when packets arrived (ns) and what each counts on the link (bytes). Out: the largest burst, as the depth of the
token bucket that the stream would need."""

from __future__ import annotations

from collections.abc import Sequence

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND


def largest_burst_bytes(times_ns: Sequence[int], sizes_bytes: Sequence[int], rate_bps: int) -> float:
    """The smallest bucket depth b (bytes) with which all packets conform to a token bucket of `rate_bps`.

    Times must not go back. A perfectly paced stream needs one packet; n packets at the same instant need n. Source:
    the token bucket of RFC 2697 with one rate; in network calculus, the burst of the least arrival curve r·t + b.
    """
    if len(times_ns) != len(sizes_bytes):
        raise ValueError(f"{len(times_ns)} times and {len(sizes_bytes)} sizes")
    # In units of 1 bit·ns/s nothing is rounded before the end.
    unit = BITS_PER_BYTE * NS_PER_SECOND
    used = deepest = 0
    last = times_ns[0] if times_ns else 0
    for time, size in zip(times_ns, sizes_bytes, strict=True):
        if time < last:
            raise ValueError(f"packets arrived at {last} ns and then at {time} ns: sort them first")
        used = max(0, used - rate_bps * (time - last)) + size * unit
        deepest, last = max(deepest, used), time
    return deepest / unit


def largest_bunch(times_ns: Sequence[int]) -> int:
    """The most packets that arrived at one instant."""
    most = count = 0
    last: int | None = None
    for time in times_ns:
        count = count + 1 if time == last else 1
        most, last = max(most, count), time
    return most
