"""Changes of links in a run: as its program asks for them, and as events.json says that they were made.

In: changes compiled for links, or the documents that `ewan-node` reads and writes (emulator/batch/src/events.rs).
Out: typed events, and the same documents again.
"""

from __future__ import annotations

from pathlib import Path

from ewan.labs.base import codec, documents
from ewan.labs.base.codec import Document, Struct
from ewan.labs.link import Change
from ewan.labs.link.direction import Heading

FILE = "events.json"


class Event(Struct):
    """At `at_ns` after T0 one direction of a link changes, as `ewan.labs.change.compile_change` says.

    Where `down` is not None, the whole link goes down (true) or comes back (false) instead, and nothing else changes.
    `after`: steps that must have ended; `at_ns` counts from then. `when`: what it waits for, in words.
    """

    at_ns: int
    link: str
    direction: Heading
    change: Change
    down: bool | None
    after: tuple[int, ...] = ()
    when: str = ""

    def __post_init__(self) -> None:
        if self.down is not None and (self.change != Change() or self.direction != "forward"):
            raise ValueError("a link that goes down or comes back changes nothing else, and its direction is forward")


def link_change(at_ns: int, link: str, direction: Heading, change: Change) -> Event:
    """The event that changes one direction of a link."""
    return Event(at_ns, link, direction, change, down=None)


def carrier_change(at_ns: int, link: str, down: bool) -> Event:
    """The event that takes a whole link down, or brings it back."""
    return Event(at_ns, link, "forward", Change(), down)


class EventOutcome(Struct):
    """An `Event` of a run with its outcome. `applied_ns`: from T0, None: it was not made.

    `after` and `when` are the event's. `recovered_ns`: when routes again carried every pair, where a protocol finds
    them and they did.
    """

    at_ns: int
    link: str
    direction: Heading
    change: Change
    applied_ns: int | None
    error: str | None
    down: bool | None = None
    recovered_ns: int | None = None
    after: tuple[int, ...] = ()
    when: str = ""


class EventOutcomes(Document, tag="ewan-events/1"):
    """events.json, in the order of its times."""

    events: tuple[EventOutcome, ...]


def read(directory: Path) -> tuple[EventOutcome, ...] | None:
    """The events of a run as they were made; None where it had none, or did not come to that. DocumentError for what is
    no such file."""
    try:
        data = documents.read_object(directory / FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return codec.from_data(EventOutcomes, data, "").events
    except ValueError as error:
        raise documents.DocumentError(f"{directory / FILE}: {error}") from None
