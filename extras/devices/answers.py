"""Answers of the drivers of this project, a line each: docs/how-to/labs/hardware.md has the protocol."""

from __future__ import annotations

from collections.abc import Mapping

from ewan.labs.base.codec import Struct
from ewan.labs.hardware.abilities import Abilities
from ewan.labs.hardware.device_answers import ByteSeries
from ewan.labs.hardware.driver import PROTOCOL, Counters, DeviceDescription, DeviceReading, SeriesRows
from ewan.labs.hardware.settings import DeviceSettings


class DriverRefusal(Struct):
    """A refusal: the reason in one line."""

    ok: bool
    error: str


class DoneAnswer(Struct):
    """The answer to `set` and `reset`."""

    ok: bool


class DescribeAnswer(Struct):
    """The answer to `describe`."""

    ok: bool
    protocol: int
    model: str
    device: str
    abilities: Abilities

    @classmethod
    def of(cls, found: DeviceDescription) -> DescribeAnswer:
        """The answer about a device, in this protocol."""
        return cls(True, PROTOCOL, found.model, found.device, found.abilities)


class ReadAnswer(Struct):
    """The answer to `read`; `counters` by direction."""

    ok: bool
    forward: DeviceSettings
    backward: DeviceSettings
    counters: Mapping[str, Counters] = {}

    @classmethod
    def of(cls, found: DeviceReading) -> ReadAnswer:
        """The answer about a device's settings and counters."""
        return cls(True, found.forward, found.backward, found.counters)


class SeriesAnswer(Struct):
    """The answer to `series`."""

    ok: bool
    period_ns: int
    first: int
    forward: ByteSeries
    backward: ByteSeries

    @classmethod
    def of(cls, found: SeriesRows) -> SeriesAnswer:
        """The answer about the bytes that passed."""
        return cls(True, found.period_ns, found.first, ByteSeries(found.forward), ByteSeries(found.backward))


DriverAnswer = DriverRefusal | DoneAnswer | DescribeAnswer | ReadAnswer | SeriesAnswer
