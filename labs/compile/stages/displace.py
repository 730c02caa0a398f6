"""Displacement in the delay line of a direction; and what it was written as."""

from __future__ import annotations

from typing import Any

from ewan.labs.base.units import Duration, Fraction
from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages.context import LinkContext, Obstacle
from ewan.labs.spec import fields
from ewan.labs.stages import Direction


def compile_displace(way: Settings, at: LinkContext) -> tuple[int, int, int]:
    """The share in ppb, by how many packets, and the longest time in ns; 0 for none."""
    displace = way.written.displace
    if displace is None or displace.packets is None or displace.share is None or not displace.share.ppb:
        return 0, 0, 0
    if not displace.within.ns:
        raise at.error(way, "displace", 'a packet that waits for others needs time: write "within: 50ms"', None)
    return displace.share.ppb, displace.packets, displace.within.ns


def described(direction: Direction) -> dict[str, Any]:
    """The key of a description that says it."""
    if not direction.displace_ppb:
        return {}
    written = fields.Displace.model_construct(
        share=Fraction(direction.displace_ppb),
        packets=direction.displace_packets,
        within=Duration(direction.displace_within_ns),
    )
    return {"displace": written}


def obstacle(direction: Direction) -> Obstacle | None:
    """netem lets packets pass that are not delayed."""
    return ("displace", 'netem reorders another way: write "displace: none"') if direction.displace_ppb else None
