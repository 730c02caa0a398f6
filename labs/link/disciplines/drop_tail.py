"""Drop-tail: what finds the queue full is dropped."""

from __future__ import annotations

from typing import ClassVar

from ewan.labs.link.disciplines.kind import Discipline, DisciplineKeys, Kind, QueueRequest


class DropTailKeys(DisciplineKeys):
    """Drops packets that find the buffer full; it has no settings."""


class DropTail(Discipline, tag="drop_tail"):
    """Drops what finds the queue full."""

    one_list: ClassVar[bool] = True
    of_kernel: ClassVar[bool] = True


def compile_drop_tail(keys: DropTailKeys, asked: QueueRequest) -> DropTail:
    """It has no settings."""
    return DropTail()


KINDS = {"drop-tail": Kind(0, "drops what finds the buffer full", DropTailKeys, DropTail, compile_drop_tail)}
