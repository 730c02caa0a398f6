"""The facts that the stages of a direction need about the link that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ewan.labs.base.source import DescriptionError, Places

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings


@dataclass(frozen=True, slots=True)
class LinkContext:
    """`delay_ns` is the direction's own, from the topology or as it was written; `longest_rtt_ns` is the lab's.

    `places` say where the link's settings are written.
    """

    places: Places
    link: str
    role: str
    delay_ns: int
    mtu: int
    longest_rtt_ns: int

    def error(self, way: DirectionSettings, key: str, message: str, value: object) -> DescriptionError:
        """An error that points to where `key` of the direction is written, or would be."""
        return self.places.error(way.path(key), message, value)


Obstacle = tuple[str, str]
"""A key of the description that the kernel's parts cannot express, and what to write instead."""
UINT32, INT32 = 2**32 - 1, 2**31 - 1
