"""The keys of a policer."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ewan.labs.spec.fields.model import GroupOrNone
from ewan.labs.spec.values import DepthText, RateText


class Police(GroupOrNone):
    """A token bucket before the queue, which drops what it does not hold; both keys, or none of them."""

    needed: ClassVar[frozenset[str]] = frozenset({"rate", "burst"})
    example: ClassVar[str] = "{rate: 10Mbit/s, burst: 32kB}"
    rate: RateText | None = Field(None, description="of what `framing` counts, in the long run", examples=["10Mbit/s"])
    burst: DepthText | None = Field(
        None, description="what passes at once after a pause: in any time, at most burst + rate × time passes"
    )
