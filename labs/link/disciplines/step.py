"""A mark for each packet that finds a long queue, as switches give it for DCTCP (RFC 8257)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ewan.labs.base.units import Size
from ewan.labs.base.values import BufferText
from ewan.labs.link.buffer import room_of
from ewan.labs.link.disciplines.kind import Discipline, DisciplineKeys, Kind, QueueRequest


class StepKeys(DisciplineKeys):
    """Marks by the length of the queue (DCTCP, RFC 8257)."""

    at: BufferText = Field(
        description="a packet is marked that makes more than this wait, where it allows a mark; others pass",
        examples=["65pkt", "1ms"],
    )


class Step(Discipline, tag="step"):
    """Marks each packet that makes more than this wait, where the packet allows it (DCTCP, RFC 8257)."""

    one_list: ClassVar[bool] = True
    threshold_bytes: int


def compile_step(keys: StepKeys, asked: QueueRequest) -> Step:
    """DescriptionError for a step beyond the buffer."""
    threshold, room = room_of(keys.at, "queue", asked.way, asked.at, asked.packet).bytes, asked.room.bytes
    if threshold > room:
        raise asked.error(f"the step at {Size(threshold)} is beyond the buffer of {Size(room)}: write a larger buffer")
    return Step(threshold)


KINDS = {
    "step": Kind(
        4, "marks by the length of the queue (DCTCP, RFC 8257)", StepKeys, Step, compile_step, example={"at": "10pkt"}
    )
}
