"""Answers of the node binary about the interfaces and nodes of a lab that is up, from the lab's plan.

In: which of its commands. Out: what that prints, a list with an entry for each thing that it tells of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.record.host_drops import NodeCounters

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Inspection(Generic[Found]):
    """A command of the node binary that reads a plan, and what it tells of each."""

    command: str
    kind: type[Found]

    def read(self, text: bytes) -> list[Found]:
        """Reads the output of the command; ValueError for other text."""
        return codec.decode(list[self.kind], text, self.command)  # type: ignore[name-defined]


class EnabledFeatures(Struct):
    """An interface with the offloads that are on there."""

    node: str
    interface: str
    features: tuple[str, ...]


class CardFacts(Struct):
    """A card in a node. `speed_bps`: None where it does not say; `time_stamps`: the bits of what it can take."""

    card: str
    node: str
    interface: str
    speed_bps: int | None
    time_stamps: int


LEFT_ON = Inspection("left-on", EnabledFeatures)
CARDS = Inspection("cards", CardFacts)
DROPS = Inspection("drops", NodeCounters)
