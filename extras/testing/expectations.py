"""Expectations that a test of a file has of its run: exit statuses, times, losses, metrics, output.

In: the keys of an expectation, the result of a run and its programs. Out: None, or a line that says what was measured
instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ewan.experiments.api.run import LabProgram, RunResult
from ewan.labs.base.model import Model
from ewan.labs.base.units import NS_PER_DAY, NS_PER_SECOND, PPB, Duration, Fraction, Rate, Size, UnitError
from ewan.labs.record import quantities

SUBJECTS = ("exit", "ended", "output", "lost", "received", "metric")


class Expectation(Model):
    """One of the keys exit, ended, output, lost, received and metric says of what; is, least, most or has say how
    much."""

    what: ClassVar[str] = "key of an expectation"
    exit: str | None = Field(None, description="the exit status of the program of this step", examples=["client"])
    ended: str | None = Field(None, description="the time when the program of this step ended", examples=["client"])
    output: str | None = Field(None, description="the standard output of the program of this step")
    lost: str | None = Field(None, description="the packets of this step's flow that links lost")
    by: Literal["link", "queue", "outage"] | None = Field(None, description="of `lost`: the cause; all if absent")
    received: str | None = Field(None, description="the bytes that this step's flow delivered")
    metric: str | None = Field(None, description="a metric of the run", examples=["packet loss of client"])
    is_: int | str | None = Field(None, alias="is", description="exactly this", examples=[0])
    least: int | str | None = Field(None, description="this, or more", examples=["10Mbit/s"])
    most: int | str | None = Field(None, description="this, or less", examples=["4.2s"])
    has: str | None = Field(None, description="of `output`: a regular expression that is found in it")

    @model_validator(mode="after")
    def _one(self) -> Self:
        said = [key for key in SUBJECTS if getattr(self, key) is not None]
        if len(said) != 1:
            raise ValueError(f"write one of {', '.join(SUBJECTS)}")
        limits = [each for each in (self.is_, self.least, self.most) if each is not None]
        if said == ["output"]:
            if self.has is None or limits:
                raise ValueError('write "has:" of an output')
            try:
                re.compile(self.has)
            except re.error as error:
                raise ValueError(f"is no regular expression ({error})") from None
        elif self.has is not None or not limits:
            raise ValueError('write "is:", "least:" or "most:" with a value')
        if self.by is not None and said != ["lost"]:
            raise ValueError('write "by:" only of "lost:"')
        for limit in limits:
            self._number(limit)
        return self

    def failure(self, result: RunResult, programs: Mapping[str, LabProgram]) -> str | None:
        """The line that says what was measured instead; None: it is as expected."""
        if self.output is not None:
            found = re.search(self.has or "", programs[self.output].output, re.MULTILINE)
            return None if found else f'output of {self.output}: has no "{self.has}"'
        value = self._measured(result, programs)
        for word, limit in (("is", self.is_), ("least", self.least), ("most", self.most)):
            if limit is None:
                continue
            bound = self._number(limit)
            holds = value is not None and (
                value == bound if word == "is" else value >= bound if word == "least" else value <= bound
            )
            if not holds:
                shown = self._shown(value)
                if value is None and self.step is not None and self.step in programs:
                    shown = programs[self.step].outcome
                return f"{self.subject}: {shown}, expected {'' if word == 'is' else f'at {word} '}{limit}"
        return None

    @property
    def subject(self) -> str:
        """The quantity, in words."""
        key = next(key for key in SUBJECTS if getattr(self, key) is not None)
        name = getattr(self, key)
        words = {
            "exit": f"exit status of {name}",
            "ended": f"end of {name}",
            "lost": f"packets of {name} lost" + ("" if self.by is None else f" by {self.by}"),
            "received": f"bytes of {name}",
        }
        return str(words.get(key, name))

    @property
    def step(self) -> str | None:
        """The step that it is about; None for a metric."""
        return self.exit or self.ended or self.output or self.lost or self.received

    def _measured(self, result: RunResult, programs: Mapping[str, LabProgram]) -> float | None:
        if self.exit is not None:
            return programs[self.exit].exit_code
        if self.ended is not None:
            return programs[self.ended].ended_or_none
        if self.lost is not None:
            lost = result.flow(self.lost).lost
            return lost.all if self.by is None else float(getattr(lost, f"by_{self.by}"))
        if self.received is not None:
            return result.flow(self.received).received_bytes
        assert self.metric is not None
        return result.metric(self.metric)

    def _number(self, limit: int | str) -> float:
        """A limit in the unit of what was measured."""
        if self.ended is not None:
            return Duration.parse(limit, NS_PER_DAY).ns
        if self.received is not None and isinstance(limit, str) and not limit.isdecimal():
            return Size.parse(limit).bytes
        if self.metric is None:
            try:
                return int(limit)
            except ValueError:
                raise ValueError(f'"{limit}" is no whole number: write one, like "41"') from None
        match quantities.parse(self.metric).metric.unit:
            case "ns":
                return Duration.parse(limit, NS_PER_DAY).ns / NS_PER_SECOND
            case "bit/s":
                return Rate.parse(limit).bps
            case "share":
                return Fraction.parse(limit).ppb / PPB
            case _:
                try:
                    return float(limit)
                except ValueError:
                    raise UnitError(f'"{limit}" is no number: write one, like "0.9"') from None

    def _shown(self, value: Any) -> str:
        if value is None:
            return "was not measured"
        if self.ended is not None:
            return f"{value / NS_PER_SECOND:.9g}s"
        if self.metric is not None and quantities.parse(self.metric).metric.unit == "share":
            return f"is {100 * value:.6g}%"
        return f"is {value:.9g}" if isinstance(value, float) else f"is {value}"
