"""A middlebox before the queue: it clears ECN, or long packets vanish in it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import PlainValidator

from ewan.labs.base.units import Size
from ewan.labs.base.values import written_as


def _blackhole(value: object) -> Size | Literal["none"]:
    """The longest IP packet that passes, or `none`."""
    if value == "none":
        return "none"
    size = Size.parse(value)
    if 68 <= size.bytes <= 65535:
        return size
    raise ValueError('write the longest IP packet that passes, from 68B to 65535B, or "none"')


BlackholeText = Annotated[
    Size | Literal["none"], PlainValidator(_blackhole), written_as("`none` or a size", "1400B", "none")
]
