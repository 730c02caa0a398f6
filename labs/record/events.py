"""Changes of links in a run: as its program asks for them, and as events.json says that they were made.

In: changes compiled for links, or the data that `ewan-node` reads and writes (labs/node/src/batch/events.rs). Out:
typed events, and the same data again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from ewan.labs.base import documents
from ewan.labs.base.typed import read_typed
from ewan.labs.link import Change
from ewan.labs.link.direction import Heading

FORMAT: Literal["ewan-events/1"] = "ewan-events/1"
FILE = "events.json"


@dataclass(frozen=True, slots=True)
class LinkChange:
    """One direction of a link changes `at_ns` after T0, as `ewan.labs.change.compile_change` says."""

    TAG: ClassVar[str] = "down"
    at_ns: int
    link: str
    direction: Heading
    change: Change
    down: None = field(default=None, init=False)


@dataclass(frozen=True, slots=True)
class NoChange:
    """Where a change would be."""


@dataclass(frozen=True, slots=True)
class CarrierChange:
    """A whole link goes down (true) or comes back (false) `at_ns` after T0."""

    TAG: ClassVar[str] = "down"
    at_ns: int
    link: str
    down: bool
    direction: Literal["forward"] = field(default="forward", init=False)
    change: NoChange = field(default=NoChange(), init=False)


Event = LinkChange | CarrierChange


@dataclass(frozen=True, slots=True)
class MadeEvent:
    """What became of an event: of a `LinkChange` where `down` is None. `applied_ns`: from T0, None: it was not made.

    `recovered_ns`: when routes again carried every pair, where a protocol finds them and they did.
    """

    SPARSE: ClassVar = {"down", "recovered_ns"}
    at_ns: int
    link: str
    direction: Heading
    change: Change
    applied_ns: int | None
    error: str | None
    down: bool | None = None
    recovered_ns: int | None = None


@dataclass(frozen=True, slots=True)
class MadeEvents:
    """events.json, in the order of its times."""

    events: tuple[MadeEvent, ...]
    format: Literal["ewan-events/1"] = field(default=FORMAT, init=False)


def read(directory: Path) -> tuple[MadeEvent, ...] | None:
    """The events of a run as they were made; None where it had none, or did not come to that. DocumentError for what is
    no such file."""
    try:
        data = documents.read_object(directory / FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return from_data(data)
    except ValueError as error:
        raise documents.DocumentError(f"{directory / FILE}: {error}") from None


def from_data(data: Any) -> tuple[MadeEvent, ...]:
    """The events of the file's data; ValueError that names the first wrong place."""
    found: MadeEvents = read_typed(MadeEvents, data, "")
    return found.events
