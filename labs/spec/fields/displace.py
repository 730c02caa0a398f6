"""The keys of displacement."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ewan.labs.base.units import Duration
from ewan.labs.spec.fields.model import GroupOrNone
from ewan.labs.spec.values import Count, DurationText, FractionText

MOST_PACKETS = 1000


class Displace(GroupOrNone):
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
