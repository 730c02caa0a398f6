"""Drop-tail: what finds the queue full is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ewan.labs.link.disciplines.kind import Asked, Discipline, DisciplineKeys, Kind


class DropTailKeys(DisciplineKeys):
    """Drops packets that find the buffer full; it has no settings."""


@dataclass(frozen=True, slots=True)
class DropTail(Discipline):
    """Drops what finds the queue full."""

    one_list: ClassVar[bool] = True
    of_kernel: ClassVar[bool] = True
    kind: Literal["drop_tail"] = field(default="drop_tail", init=False)


def compile_drop_tail(keys: DropTailKeys, asked: Asked) -> DropTail:
    """It has no settings."""
    return DropTail()


KINDS = {"drop-tail": Kind(0, "drops what finds the buffer full", DropTailKeys, DropTail, compile_drop_tail)}
