"""The token buckets of a direction: its rate's, and a policer's before the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypedDict

from pydantic import Field, PlainValidator

from ewan.labs.base.model import GroupOrNone
from ewan.labs.base.units import Rate, Size
from ewan.labs.base.values import RateText, written_as
from ewan.labs.link.context import LinkContext
from ewan.labs.link.framing import framed, framing_of

if TYPE_CHECKING:
    from ewan.labs.link.keys import Direction
    from ewan.labs.link.settings import DirectionSettings

_DEPTHS = range(64, 2**30 + 1)


def _depth(value: object) -> Size:
    """The depth of a token bucket."""
    size = Size.parse(value)
    if size.bytes in _DEPTHS:
        return size
    raise ValueError('write 64B to 1GiB, like "32kB"')


def _burst(value: object) -> Size | Literal["none"]:
    return "none" if value == "none" else _depth(value)


def _peak(value: object) -> Rate | Literal["none"]:
    return "none" if value == "none" else Rate.parse(value)


DepthText = Annotated[Size, PlainValidator(_depth), written_as("size", "32kB")]
BurstText = Annotated[Size | Literal["none"], PlainValidator(_burst), written_as("`none` or a size", "32kB", "none")]
PeakText = Annotated[Rate | Literal["none"], PlainValidator(_peak), written_as("`none` or a rate", "1Gbit/s", "none")]


class PoliceKeys(GroupOrNone):
    """A token bucket before the queue, which drops what it does not hold; both keys, or none of them."""

    needed: ClassVar[frozenset[str]] = frozenset({"rate", "burst"})
    example: ClassVar[str] = "{rate: 10Mbit/s, burst: 32kB}"
    rate: RateText | None = Field(None, description="of what `framing` counts, in the long run", examples=["10Mbit/s"])
    burst: DepthText | None = Field(
        None, description="what passes at once after a pause: in any time, at most burst + rate × time passes"
    )


def police_words(rate_bps: int, depth_bytes: int) -> str:
    """Rate and depth of a policer's bucket."""
    return f"{Rate(rate_bps)} + {Size(depth_bytes)}" if rate_bps else "none"


def compile_burst(way: DirectionSettings, at: LinkContext) -> tuple[int, int]:
    """Depth in bytes and peak rate in bit/s, 0 for none; DescriptionError for a peak without a burst, or a slow one."""
    burst, peak = way.written.burst, way.written.peak
    if isinstance(peak, Rate):
        if not isinstance(burst, Size):
            raise at.error(way, "peak", 'a burst passes at it: write "burst: 32kB" too', peak)
        if peak.bps < way.rate.bps:
            raise at.error(way, "peak", f"is below the rate of {way.rate}: write a higher one", peak)
    depth = burst.bytes if isinstance(burst, Size) else 0
    return depth, peak.bps if depth and isinstance(peak, Rate) else 0


def compile_police(way: DirectionSettings, at: LinkContext) -> tuple[int, int]:
    """Rate in bit/s and depth in bytes; 0 for none. DescriptionError for a bucket that never holds a full packet."""
    police = way.written.police
    if police is None or police.rate is None or police.burst is None:
        return 0, 0
    largest = framed(framing_of(way), at.mtu)
    if police.burst.bytes < largest:
        message = f"{at.link} has packets of {Size(largest)}, which would never pass: write a burst of as much"
        raise at.error(way, "police", message, None)
    return police.rate.bps, police.burst.bytes


class DescribedBucket(TypedDict, total=False):
    """Keys of a description that say how a burst passes."""

    burst: Size
    peak: Rate


def described(direction: Direction) -> DescribedBucket:
    """The keys of a description that say how a burst passes."""
    keys = DescribedBucket()
    if direction.burst_bytes:
        keys["burst"] = Size(direction.burst_bytes)
    if direction.peak_bps:
        keys["peak"] = Rate(direction.peak_bps)
    return keys
