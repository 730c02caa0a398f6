"""The keys of displacement."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from labs.spec.fields.model import Model
from labs.spec.values import Count, DurationText, FractionText
from labs.units import Duration

MOST_PACKETS = 1000


class Displace(Model):
    """Packets that leave behind later ones; share and packets, or none of them."""

    share: FractionText | None = Field(None, description="of the packets, each drawn on its own", examples=["1%"])
    packets: Annotated[int, Count(1, MOST_PACKETS)] | None = Field(
        None, description="so many later packets that are not drawn leave before it", examples=[3]
    )
    within: DurationText = Field(
        Duration.parse("50ms"),
        description="it leaves this long after its own time where so many did not come before; 50ms if absent",
    )

    @model_validator(mode="before")
    @classmethod
    def _both(cls, value: Any) -> Any:
        if value == "none":
            return {}
        if not isinstance(value, dict) or {"share", "packets"} - value.keys():
            raise ValueError('write "{share: 1%, packets: 3}" or "none"')
        return value
