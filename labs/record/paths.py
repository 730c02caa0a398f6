"""The links that the payload of a run's flows crosses: `paths` of schedule.json, its type, writer and reader.

In: crossed links by source, sink and role. Out: the JSON data of `paths`, and the typed form again. The generator
writes it, analysis reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ewan.labs.base.typed import read_typed


@dataclass(frozen=True, slots=True)
class CrossedLink:
    """One direction of a link; `rate_bps` at the start of the run, None for a plain link without a rate."""

    link: str
    direction: Literal["forward", "backward"]
    rate_bps: int | None


@dataclass(frozen=True, slots=True)
class CrossedPath:
    """What payload crosses from one node to another, in order, by the role of the flows that send it.

    Messages between ranks have neither source nor sink: all links between the ranks are together.
    """

    source: str | None
    sink: str | None
    role: str
    hops: tuple[CrossedLink, ...]


def to_data(paths: Iterable[CrossedPath]) -> list[dict[str, Any]]:
    """As JSON data. Dictionaries, not dataclasses: `orjson` sorts the keys of the former alone."""
    return [
        {
            "source": path.source,
            "sink": path.sink,
            "role": path.role,
            "hops": [{"link": hop.link, "direction": hop.direction, "rate_bps": hop.rate_bps} for hop in path.hops],
        }
        for path in paths
    ]


def from_data(data: Any, where: str = "paths") -> tuple[CrossedPath, ...]:
    """What `to_data` gave; ValueError that names the first wrong place, below `where`."""
    paths: tuple[CrossedPath, ...] = read_typed(tuple[CrossedPath, ...], data, where)
    return paths
