"""The keys of queue disciplines."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from labs.spec.fields.model import Model, OneOf
from labs.spec.values import Count, DurationText, FractionText, GainText, SizeText
from labs.units import Duration, Fraction


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


class DropTail(Model):
    """Drops packets that find the buffer full; it has no settings."""


class Queue(OneOf):
    """The queue discipline of one direction, with its settings."""

    what: ClassVar[str] = "queue discipline"
    drop_tail: DropTail | None = Field(None, alias="drop-tail", description="drops what finds the buffer full")
    red: Red | None = Field(None, description="RED (Floyd and Jacobson 1993)")
    codel: Codel | None = Field(None, description="CoDel (RFC 8289)")
    pie: Pie | None = Field(None, description="PIE (RFC 8033)")

    @property
    def model(self) -> DropTail | Red | Codel | Pie:
        """The discipline that was written, with its own keys."""
        model: DropTail | Red | Codel | Pie = self.choice
        return model
