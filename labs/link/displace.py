"""Displacement in the delay line: packets that leave behind so many later ones, whatever the delay is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, TypedDict

from pydantic import Field

from ewan.labs.base.model import GroupOrNone
from ewan.labs.base.units import Duration, Fraction
from ewan.labs.base.values import Count, DurationText, FractionText
from ewan.labs.link.context import LinkContext

if TYPE_CHECKING:
    from ewan.labs.link.keys import Direction
    from ewan.labs.link.settings import DirectionSettings

MOST_PACKETS = 1000


class DisplaceKeys(GroupOrNone):
    """Packets that leave behind later ones; share and packets, or none of them."""

    needed: ClassVar[frozenset[str]] = frozenset({"share", "packets"})
    example: ClassVar[str] = "{share: 1%, packets: 3}"
    share: FractionText | None = Field(None, description="of the packets, each drawn on its own", examples=["1%"])
    packets: Annotated[int, Count(1, MOST_PACKETS)] | None = Field(
        None, description="so many later packets that are not drawn leave before it", examples=[3]
    )
    within: DurationText = Field(
        Duration.parse("50ms"),
        description="it leaves this long after its own time where so many did not come before; 50ms if absent",
    )


def displace_words(share_ppb: int, packets: int, within_ns: int) -> str:
    """The displaced share, the number of packets that it is displaced by, and the longest time of a displacement, in
    words."""
    return f"{Fraction(share_ppb)} by {packets} within {Duration(within_ns)}" if share_ppb else "none"


def compile_displace(way: DirectionSettings, at: LinkContext) -> tuple[int, int, int]:
    """The share in ppb, by how many packets, and the longest time in ns; 0 for none."""
    displace = way.written.displace
    if displace is None or displace.packets is None or displace.share is None or not displace.share.ppb:
        return 0, 0, 0
    if not displace.within.ns:
        raise at.error(way, "displace", 'a packet that waits for others needs time: write "within: 50ms"', None)
    return displace.share.ppb, displace.packets, displace.within.ns


class DescribedDisplace(TypedDict, total=False):
    """The key of a description that says it."""

    displace: DisplaceKeys


def described(direction: Direction) -> DescribedDisplace:
    """The key of a description that says it."""
    if not direction.displace_ppb:
        return {}
    written = DisplaceKeys.model_construct(
        share=Fraction(direction.displace_ppb),
        packets=direction.displace_packets,
        within=Duration(direction.displace_within_ns),
    )
    return {"displace": written}
