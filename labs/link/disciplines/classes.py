"""Classes of DSCP: one before the other, or with shares of the rate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PlainValidator

from ewan.labs.base.codec import Struct
from ewan.labs.base.values import WHOLE, BufferText, Count, Name, written_as
from ewan.labs.link.buffer import room_of
from ewan.labs.link.disciplines.kind import Discipline, DisciplineKeys, Kind, QueueRequest

MOST_CLASSES = 8


_DSCP = {
    **dict.fromkeys(("be", "df", "cs0"), 0),
    **{f"cs{number}": 8 * number for number in range(1, 8)},
    **{f"af{klass}{drop}": 8 * klass + 2 * drop for klass in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
    "va": 44,
    "le": 1,
}
"""RFC 2474, 2597, 3246, 5865, 8622."""


def _dscp(value: object) -> int:
    text = "" if isinstance(value, bool) else str(value).lower()
    if text in _DSCP:
        return _DSCP[text]
    if WHOLE.fullmatch(text) and int(text) <= 63:
        return int(text)
    raise ValueError('write a DSCP by its name, like "ef", "af41" or "cs1", or as a number from 0 to 63')


Dscp = Annotated[int, PlainValidator(_dscp), written_as("DSCP", "ef", "af41", "46")]


class TrafficClassKeys(DisciplineKeys):
    """Packets that wait together."""

    name: Name = Field(description="names it in reports", examples=["voice"])
    dscp: tuple[Dscp, ...] = Field(
        (), description="DSCPs that belong to it; what no class names belongs to the last one", examples=["[ef, cs5]"]
    )
    buffer: BufferText | None = Field(
        None, description="what may wait of it; as much as the link's `buffer` if absent", examples=["50pkt"]
    )


class WeightedClassKeys(TrafficClassKeys):
    """Packets that wait together, and their share."""

    weight: Annotated[int, Count(1, 1000)] = Field(
        1, description="its share of the rate, against the weights of the others that wait; 1 if absent"
    )


class PriorityKeys(DisciplineKeys):
    """Up to 8 classes."""

    classes: Annotated[tuple[TrafficClassKeys, ...], Field(min_length=1, max_length=MOST_CLASSES)] = Field(
        description="the first one goes first", examples=["[{name: voice, dscp: [ef]}, {name: rest}]"]
    )


class WeightedKeys(DisciplineKeys):
    """Up to 8 classes."""

    classes: Annotated[tuple[WeightedClassKeys, ...], Field(min_length=1, max_length=MOST_CLASSES)] = Field(
        description="each with its weight", examples=["[{name: gold, dscp: [af41], weight: 3}, {name: rest}]"]
    )


class TrafficClass(Struct):
    """Packets with one of these DSCPs, and what may wait of them; at least one of the limits is set."""

    dscp: tuple[int, ...]
    limit_bytes: int | None
    limit_packets: int | None
    name: str
    weight: int


class Classes(Discipline, tag="classes"):
    """A queue a class, in place of the direction's limits; strict: a class goes before all those behind it.

    What no class names goes to the last one.
    """

    classes: tuple[TrafficClass, ...]
    scheduler: Literal["strict", "weighted"]

    @property
    def words(self) -> str:
        """The discipline's name, and those of its classes."""
        name = "priority" if self.scheduler == "strict" else "weighted"
        return f"{name} of {', '.join(each.name for each in self.classes)}"


def compile_classes(keys: PriorityKeys | WeightedKeys, asked: QueueRequest) -> Classes:
    """DescriptionError for two classes of one name or of one DSCP."""
    owners: dict[int, str] = {}
    names: set[str] = set()
    classes = []
    for each in keys.classes:
        if each.name in names:
            raise asked.error(f"two classes are called {each.name}: write another name")
        names.add(each.name)
        for point in each.dscp:
            if point in owners:
                raise asked.error(f"DSCP {point} is of class {owners[point]} and of class {each.name}: write it once")
            owners[point] = each.name
        own = asked.room if each.buffer is None else room_of(each.buffer, "queue", asked.way, asked.at, asked.packet)
        weight = each.weight if isinstance(each, WeightedClassKeys) else 1
        classes.append(TrafficClass(each.dscp, own.limit_bytes, own.limit_packets, each.name, weight))
    return Classes(tuple(classes), "weighted" if isinstance(keys, WeightedKeys) else "strict")


STRICT, SHARED = "classes of DSCP, one before the other", "classes of DSCP that share the rate by weights"
EXAMPLE = {"classes": [{"name": "voice", "dscp": ["EF"]}, {"name": "rest"}]}
KINDS = {
    "priority": Kind(9, STRICT, PriorityKeys, Classes, compile_classes, TrafficClassKeys, EXAMPLE),
    "weighted": Kind(10, SHARED, WeightedKeys, Classes, compile_classes, WeightedClassKeys, EXAMPLE),
}
