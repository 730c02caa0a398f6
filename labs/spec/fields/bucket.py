"""The keys of a policer."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from labs.spec.fields.model import Model
from labs.spec.values import DepthText, RateText


class Police(Model):
    """A token bucket before the queue, which drops what it does not hold; both keys, or none of them."""

    rate: RateText | None = Field(None, description="of what `framing` counts, in the long run", examples=["10Mbit/s"])
    burst: DepthText | None = Field(
        None, description="what passes at once after a pause: in any time, at most burst + rate × time passes"
    )

    @model_validator(mode="before")
    @classmethod
    def _both(cls, value: Any) -> Any:
        if value == "none":
            return {}
        if not isinstance(value, dict) or {"rate", "burst"} - value.keys():
            raise ValueError('write "{rate: 10Mbit/s, burst: 32kB}" or "none"')
        return value
