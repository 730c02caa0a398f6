"""Stochastic fairness queueing (McKenney 1990)."""

from __future__ import annotations

from pydantic import Field

from ewan.labs.base.values import DurationText
from ewan.labs.link.disciplines.kind import LEAST_UPDATE, Discipline, FlowsKeys, Kind, QueueRequest, quantum_of


class SfqKeys(FlowsKeys):
    """Stochastic fairness queueing (McKenney 1990). A full queue as above."""

    perturb: DurationText | None = Field(
        None, description="flows are given to queues anew after each such time; never if absent", examples=["10s"]
    )


class Sfq(Discipline, tag="sfq", kw_only=True):
    """McKenney 1990; flows are given to queues anew after each `perturb_ns`, never if 0."""

    flows: int
    perturb_ns: int
    quantum_bytes: int


def compile_sfq(keys: SfqKeys, asked: QueueRequest) -> Sfq:
    """DescriptionError for flows that are given to queues anew too often."""
    perturb_ns = keys.perturb.ns if keys.perturb else 0
    if 0 < perturb_ns < LEAST_UPDATE.ns:
        message = f'SFQ gives flows to queues anew after {LEAST_UPDATE} or more: write "perturb: 10s"'
        raise asked.error(message, "sfq")
    return Sfq(flows=keys.flows, quantum_bytes=quantum_of(keys, asked), perturb_ns=perturb_ns)


KINDS = {"sfq": Kind(7, "stochastic fairness queueing (McKenney 1990)", SfqKeys, Sfq, compile_sfq)}
