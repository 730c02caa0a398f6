"""The keys of a radio link."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ewan.labs.spec.fields.model import GroupOrNone
from ewan.labs.spec.values import Count, ErrorsText, RadioTimeText, RoundText


class Aggregate(GroupOrNone):
    """Packets that wait are sent together and arrive together, as in an A-MPDU (IEEE 802.11)."""

    needed: ClassVar[frozenset[str]] = frozenset({"packets"})
    example: ClassVar[str] = "{packets: 64, time: 4ms, gap: 150us}"
    packets: Annotated[int, Count(1, 256)] | None = Field(None, description="most packets of a transmission")
    time: RadioTimeText | None = Field(
        None, description="no packet joins a transmission that takes so long already; without limit if absent"
    )
    gap: RadioTimeText | None = Field(
        None,
        description="before each transmission nothing is sent for so long: contention, preamble, acknowledgement; "
        "0 if absent",
        examples=["150us"],
    )


class Harq(GroupOrNone):
    """A transmission that failed is repeated a round later (hybrid ARQ of LTE and NR); later packets wait for it."""

    needed: ClassVar[frozenset[str]] = frozenset({"errors", "round"})
    example: ClassVar[str] = "{errors: 10%, round: 8ms}"
    errors: ErrorsText | None = Field(None, description="transmissions that fail; at most 90%", examples=["10%"])
    round: RoundText | None = Field(None, description="from a transmission to its repetition", examples=["8ms"])
    rounds: Annotated[int, Count(1, 16)] = Field(
        3, description="most repetitions; the last one does not fail; 3 if absent"
    )
