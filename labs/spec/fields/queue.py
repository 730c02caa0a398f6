"""The keys of queue disciplines."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from ewan.labs.base.units import Duration, Fraction
from ewan.labs.spec.fields.model import Model, OneOf
from ewan.labs.spec.values import BufferText, Count, Dscp, DurationText, FractionText, GainText, Name, SizeText

MOST_CLASSES = 8
TARGETED = ("codel", "pie", "fq-codel", "dualpi2")
"""Disciplines that hold the wait in the queue at a target."""


class Red(Model):
    """Floyd and Jacobson 1993, gentle."""

    min: SizeText | None = Field(None, description="no drop below this average; a sixth of the limit if absent")
    max: SizeText | None = Field(None, description="`max_p` at this average; half of the limit if absent")
    max_p: FractionText = Field(Fraction.parse("10%"), description="10 % if absent")
    weight: Annotated[int, Count(0, 20)] = Field(9, description="the average moves by 2^-weight a packet; 9 if absent")
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Codel(Model):
    """RFC 8289."""

    target: DurationText | None = Field(
        None, description="a twentieth of the interval, at least a packet's time, if absent"
    )
    interval: DurationText | None = Field(
        None, description="the longest RTT, at least 100ms and ten packets' time, at most 100s, if absent"
    )
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Pie(Model):
    """RFC 8033."""

    target: DurationText | None = Field(None, description="15ms, or two packets' time on a slow link, if absent")
    update: DurationText = Field(Duration.parse("15ms"), description="at least 100us; 15ms if absent")
    alpha: GainText = Field(125, description="0.125Hz if absent")
    beta: GainText = Field(1250, description="1.25Hz if absent")
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Step(Model):
    """Marks packets by the length of the queue that they find, as switches do for DCTCP (RFC 8257)."""

    at: BufferText = Field(
        description="a packet is marked that makes more than this wait, where it allows a mark; others pass",
        examples=["65pkt", "1ms"],
    )


class Flows(Model):
    """Queues for flows, which take turns."""

    flows: Annotated[int, Count(1, 65536)] = Field(
        1024, description="queues; a flow's addresses, protocol and ports choose its queue; 1024 if absent"
    )
    quantum: SizeText | None = Field(
        None, description="bytes of a turn, as `framing` counts them; at least 64B; the largest packet if absent"
    )


class FqCodel(Flows):
    """RFC 8290."""

    target: DurationText | None = Field(None, description="as of CoDel")
    interval: DurationText | None = Field(None, description="as of CoDel")
    ecn: bool = Field(True, description="mark instead of dropping where the packet allows it; true if absent")


class Drr(Flows):
    """Shreedhar and Varghese 1996."""


class Sfq(Flows):
    """McKenney 1990."""

    perturb: DurationText | None = Field(
        None, description="flows are given to queues anew after each such time; never if absent", examples=["10s"]
    )


class DualPi2(Model):
    """RFC 9332; defaults are those of Linux."""

    target: DurationText | None = Field(
        None, description="of the classic queue; 15ms, or two packets' time on a slow link, if absent"
    )
    update: DurationText = Field(Duration.parse("16ms"), description="at least 100us; 16ms if absent")
    alpha: GainText = Field(160, description="0.16Hz if absent")
    beta: GainText = Field(3200, description="3.2Hz if absent")
    coupling: Annotated[int, Count(1, 100)] = Field(
        2,
        description="L4S is marked with so many times the probability whose square drops classic packets; 2 if absent",
    )
    step: DurationText = Field(
        Duration.parse("1ms"), description="an L4S packet that waited so long is marked; 1ms if absent"
    )
    classic: FractionText = Field(
        Fraction.parse("10%"), description="of the rate, for the classic queue while both wait; 10 % if absent"
    )


class TrafficClass(Model):
    """Packets that wait together."""

    name: Name = Field(description="names it in reports", examples=["voice"])
    dscp: tuple[Dscp, ...] = Field(
        (), description="DSCPs that belong to it; what no class names belongs to the last one", examples=["[ef, cs5]"]
    )
    buffer: BufferText | None = Field(
        None, description="what may wait of it; as much as the link's `buffer` if absent", examples=["50pkt"]
    )


class WeightedClass(TrafficClass):
    """Packets that wait together, and their share."""

    weight: Annotated[int, Count(1, 1000)] = Field(
        1, description="its share of the rate, against the weights of the others that wait; 1 if absent"
    )


class Priority(Model):
    """A class goes before all those behind it."""

    classes: Annotated[tuple[TrafficClass, ...], Field(min_length=1, max_length=MOST_CLASSES)] = Field(
        description="the first one goes first", examples=["[{name: voice, dscp: [ef]}, {name: rest}]"]
    )


class Weighted(Model):
    """Classes share the rate by their weights."""

    classes: Annotated[tuple[WeightedClass, ...], Field(min_length=1, max_length=MOST_CLASSES)] = Field(
        description="each with its weight", examples=["[{name: gold, dscp: [af41], weight: 3}, {name: rest}]"]
    )


class DropTail(Model):
    """Drops packets that find the buffer full; it has no settings."""


class Queue(OneOf):
    """The queue discipline of one direction, with its settings.

    A discipline and its target may be one text, `codel 5ms`, so that a sweep can go over them.
    """

    what: ClassVar[str] = "queue discipline"
    drop_tail: DropTail | None = Field(None, alias="drop-tail", description="drops what finds the buffer full")
    red: Red | None = Field(None, description="RED (Floyd and Jacobson 1993)")
    codel: Codel | None = Field(None, description="CoDel (RFC 8289)")
    pie: Pie | None = Field(None, description="PIE (RFC 8033)")
    step: Step | None = Field(None, description="marks by the length of the queue (DCTCP, RFC 8257)")
    fq_codel: FqCodel | None = Field(None, alias="fq-codel", description="a queue with CoDel for each flow (RFC 8290)")
    drr: Drr | None = Field(None, description="deficit round robin of flows (Shreedhar and Varghese 1996)")
    sfq: Sfq | None = Field(None, description="stochastic fairness queueing (McKenney 1990)")
    dualpi2: DualPi2 | None = Field(None, description="a queue for L4S and one for the rest, coupled (RFC 9332)")
    priority: Priority | None = Field(None, description="classes of DSCP, one before the other")
    weighted: Weighted | None = Field(None, description="classes of DSCP that share the rate by weights")

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
    def model(self) -> AnyQueue:
        """The discipline that was written, with its own keys."""
        model: AnyQueue = self.choice
        return model


AnyQueue = DropTail | Red | Codel | Pie | Step | FqCodel | Drr | Sfq | DualPi2 | Priority | Weighted
