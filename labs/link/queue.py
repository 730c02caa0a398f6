"""Stage 2, the queue: how much may wait for the rate, and which discipline drops or marks before that.

Limits and their defaults are here, each discipline is a file in labs/link/disciplines.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, create_model, model_validator

from ewan.labs.base.codec import Struct
from ewan.labs.base.model import Model, OneOf
from ewan.labs.base.units import Buffer, Size
from ewan.labs.link.buffer import buffer_limits, room_of
from ewan.labs.link.context import UINT32, LinkContext, Obstacle
from ewan.labs.link.disciplines import KINDS, Discipline
from ewan.labs.link.disciplines.classes import Classes, TrafficClass
from ewan.labs.link.disciplines.drop_tail import DropTail
from ewan.labs.link.disciplines.kind import QueueRequest
from ewan.labs.link.framing import framed, framing_of
from ewan.labs.link.trace import most

if TYPE_CHECKING:
    from ewan.labs.link.keys import Direction
    from ewan.labs.link.settings import DirectionSettings

    AnyDiscipline = Discipline
else:
    AnyDiscipline = functools.reduce(operator.or_, (kind.plan for kind in KINDS.values()))

WAN_BUFFER, ACCESS_BUFFER = Buffer("millibdp", 1000), Buffer("packets", 1000)
FEWEST_PACKETS = 10  # a default buffer holds TCP's initial window (RFC 6928), however short the RTT
TARGETED = tuple(word for word, kind in KINDS.items() if "target" in kind.keys.model_fields)
"""Disciplines that hold the wait in the queue at a target."""

_KEYS: dict[str, tuple[Any, Any]] = {
    word.replace("-", "_"): (kind.keys | None, Field(None, alias=word, description=kind.description))
    for word, kind in KINDS.items()
}


class QueueKeys(
    create_model("_Kinds", __base__=OneOf, __cls_kwargs__={"defer_build": True}, **_KEYS)  # type: ignore[misc]
):
    """The queue discipline of one direction, with its settings.

    A discipline and its target may be one text, `codel 5ms`, so that a sweep can go over them.
    """

    what: ClassVar[str] = "queue discipline"

    @model_validator(mode="before")
    @classmethod
    def _with_target(cls, value: Any) -> Any:
        kind, space, target = value.strip().partition(" ") if isinstance(value, str) else ("", "", "")
        if not space:
            return value
        if kind not in TARGETED:
            raise ValueError(f'{", ".join(TARGETED)} have a target: write "codel 5ms"')
        return {kind: {"target": target.strip()}}

    @property
    def model(self) -> Model:
        """The discipline that was written, with its own keys."""
        model: Model = self.choice
        return model


class Queue(Struct):
    """Limits count packets that wait, not the one in service; at least one of the two is set."""

    limit_packets: int | None
    limit_bytes: int | None
    discipline: AnyDiscipline


def queue_limits(queue: Queue) -> tuple[Queue | TrafficClass, ...]:
    """Who has a limit: the classes, or the queue as a whole."""
    return queue.discipline.classes if isinstance(queue.discipline, Classes) else (queue,)


def limit_words(queue: Queue) -> str:
    """`12.5MB`, `1000pkt`, or both."""
    limits = [str(Size(queue.limit_bytes))] if queue.limit_bytes is not None else []
    limits += [f"{queue.limit_packets}pkt"] if queue.limit_packets is not None else []
    return " ".join(limits)


def compile_queue(way: DirectionSettings, at: LinkContext) -> Queue:
    """DescriptionError for a buffer below one packet, and for a discipline that cannot work."""
    packet = framed(framing_of(way), at.mtu)
    traced = most(way, "buffer")
    written = way.written.buffer if traced is None else Buffer("bytes", traced)
    buffer = written or (WAN_BUFFER if at.role == "wan" else ACCESS_BUFFER)
    if written is None:
        _, size = buffer_limits(buffer, way.rate, at.longest_rtt_ns)
        buffer = buffer if size is None else Buffer("bytes", max(size, FEWEST_PACKETS * packet))
    room = room_of(buffer, "buffer", way, at, packet)
    queue = way.written.queue
    if queue is None:
        return Queue(room.limit_packets, room.limit_bytes, DropTail())
    discipline = KINDS[queue.kind].compile(queue.model, QueueRequest(way, at, packet, room))
    return Queue(room.limit_packets, room.limit_bytes, discipline)


def described(queue: Queue) -> Buffer:
    """The queue's limit as a description says it."""
    if queue.limit_bytes is not None:
        return Buffer("bytes", queue.limit_bytes)
    return Buffer("packets", queue.limit_packets or 0)


def is_drop_tail(written: QueueKeys) -> bool:
    """Return whether the queue is drop-tail, which a network card has too."""
    return str(written.kind) == "drop-tail"


def obstacle(direction: Direction, way: DirectionSettings) -> Obstacle | None:
    """The queue size that the kernel's queueing disciplines cannot hold; None if they can."""
    if max(direction.queue.limit_bytes or 0, direction.queue.limit_packets or 0) > UINT32:
        return "buffer", 'a queue of the kernel holds 32 bits of bytes: write at most "4GB"'
    return None


def discipline_obstacle(direction: Direction, way: DirectionSettings) -> Obstacle | None:
    """The discipline or value that the kernel's queueing disciplines lack; None if they have it."""
    discipline = direction.queue.discipline
    if not discipline.of_kernel:
        *known, last = (word for word, kind in KINDS.items() if kind.plan.of_kernel)
        return "queue", f"{discipline.kind} is only in our own model: write {', '.join(known)} or {last}"
    why = discipline.kernel_lacks()
    return ("queue", why) if why else None
