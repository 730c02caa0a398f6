"""The token buckets of a direction: its rate's, and a policer's; and what they were written as."""

from __future__ import annotations

from typing import Any

from ewan.labs.base.units import Rate, Size
from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages.context import LinkContext, Obstacle
from ewan.labs.compile.stages.framing import framed, framing_of
from ewan.labs.stages import Direction


def compile_burst(way: Settings, at: LinkContext) -> tuple[int, int]:
    """Depth in bytes and peak rate in bit/s, 0 for none; DescriptionError for a peak without a burst, or a slow one."""
    burst, peak = way.written.burst, way.written.peak
    if isinstance(peak, Rate):
        if not isinstance(burst, Size):
            raise at.error(way, "peak", 'a burst passes at it: write "burst: 32kB" too', peak)
        if peak.bps < way.rate.bps:
            raise at.error(way, "peak", f"is below the rate of {way.rate}: write a higher one", peak)
    depth = burst.bytes if isinstance(burst, Size) else 0
    return depth, peak.bps if depth and isinstance(peak, Rate) else 0


def compile_police(way: Settings, at: LinkContext) -> tuple[int, int]:
    """Rate in bit/s and depth in bytes; 0 for none. DescriptionError for a bucket that never holds a full packet."""
    police = way.written.police
    if police is None or police.rate is None or police.burst is None:
        return 0, 0
    largest = framed(framing_of(way), at.mtu)
    if police.burst.bytes < largest:
        message = f"{at.link} has packets of {Size(largest)}, which would never pass: write a burst of as much"
        raise at.error(way, "police", message, None)
    return police.rate.bps, police.burst.bytes


def described(direction: Direction) -> dict[str, Any]:
    """The keys of a description that say how a burst passes."""
    keys: dict[str, Any] = {"burst": Size(direction.burst_bytes)} if direction.burst_bytes else {}
    return keys | ({"peak": Rate(direction.peak_bps)} if direction.peak_bps else {})


def obstacle(direction: Direction) -> Obstacle | None:
    """netem and psp have no bucket that is told so."""
    if direction.police_bps:
        return "police", 'such a policer is our own model\'s alone: write "police: none"'
    return ("burst", 'such a bucket is our own model\'s alone: write "burst: none"') if direction.burst_bytes else None
