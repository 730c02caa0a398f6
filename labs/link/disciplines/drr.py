"""Deficit round robin of flows (Shreedhar and Varghese 1996)."""

from __future__ import annotations

from ewan.labs.link.disciplines.kind import Discipline, FlowsKeys, Kind, QueueRequest, quantum_of


class DrrKeys(FlowsKeys):
    """Deficit round robin (Shreedhar and Varghese 1996). A full queue as above."""


class Drr(Discipline, tag="drr", kw_only=True):
    """Shreedhar and Varghese 1996."""

    flows: int
    quantum_bytes: int


def compile_drr(keys: DrrKeys, asked: QueueRequest) -> Drr:
    """With a quantum."""
    return Drr(flows=keys.flows, quantum_bytes=quantum_of(keys, asked))


KINDS = {"drr": Kind(6, "deficit round robin of flows (Shreedhar and Varghese 1996)", DrrKeys, Drr, compile_drr)}
