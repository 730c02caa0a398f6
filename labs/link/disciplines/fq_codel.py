"""FQ-CoDel (RFC 8290)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ewan.labs.base.values import DurationText
from ewan.labs.link.disciplines import codel
from ewan.labs.link.disciplines.kind import Discipline, FlowsKeys, Kind, QueueRequest, quantum_of


class FqCodelKeys(FlowsKeys):
    """RFC 8290. A full queue makes room by dropping from the head of the flow with the most bytes."""

    target: DurationText | None = Field(None, description="as of CoDel")
    interval: DurationText | None = Field(None, description="as of CoDel")
    ecn: bool = Field(True, description="mark instead of dropping where the packet allows it; true if absent")


class FqCodel(Discipline, tag="fq_codel", kw_only=True):
    """RFC 8290: so many queues for flows, each with CoDel."""

    of_kernel: ClassVar[bool] = True
    ecn: bool
    flows: int
    interval_ns: int
    quantum_bytes: int
    target_ns: int

    def kernel_lacks(self) -> str:
        """The kernel's times are in microseconds."""
        return codel.kernel_lacks(self.target_ns)


def compile_fq_codel(keys: FqCodelKeys, asked: QueueRequest) -> FqCodel:
    """With CoDel's times, and a quantum."""
    target_ns, interval_ns = codel.times(keys.target, keys.interval, asked)
    quantum = quantum_of(keys, asked)
    return FqCodel(flows=keys.flows, quantum_bytes=quantum, target_ns=target_ns, interval_ns=interval_ns, ecn=keys.ecn)


ABOUT = "a queue with CoDel for each flow (RFC 8290)"
KINDS = {"fq-codel": Kind(5, ABOUT, FqCodelKeys, FqCodel, compile_fq_codel)}
