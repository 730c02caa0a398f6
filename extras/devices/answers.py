"""What the drivers of this project answer, a line each: docs/how-to/labs/hardware.md has the protocol."""

from __future__ import annotations

from collections.abc import Mapping

from ewan.labs.base.codec import Struct
from ewan.labs.hardware.abilities import Abilities
from ewan.labs.hardware.device_answers import ByteSeries
from ewan.labs.hardware.driver import PROTOCOL, Counters, DeviceDescription, DeviceReading, SeriesRows
from ewan.labs.hardware.settings import DeviceSettings


class DriverRefusal(Struct):
    """Why something cannot be done, in one line."""

    ok: bool
    error: str


class DoneAnswer(Struct):
    """To `set` and `reset`."""

    ok: bool


class DescribeAnswer(Struct):
    """To `describe`."""

    ok: bool
    protocol: int
    model: str
    device: str
    abilities: Abilities

    @classmethod
    def of(cls, found: DeviceDescription) -> DescribeAnswer:
        """Of a device in this protocol."""
        return cls(True, PROTOCOL, found.model, found.device, found.abilities)


class ReadAnswer(Struct):
    """To `read`; `counters` by direction."""

    ok: bool
    forward: DeviceSettings
    backward: DeviceSettings
    counters: Mapping[str, Counters] = {}

    @classmethod
    def of(cls, found: DeviceReading) -> ReadAnswer:
        """Of what a device does."""
        return cls(True, found.forward, found.backward, found.counters)


class SeriesAnswer(Struct):
    """To `series`."""

    ok: bool
    period_ns: int
    first: int
    forward: ByteSeries
    backward: ByteSeries

    @classmethod
    def of(cls, found: SeriesRows) -> SeriesAnswer:
        """Of what passed."""
        return cls(True, found.period_ns, found.first, ByteSeries(found.forward), ByteSeries(found.backward))


DriverAnswer = DriverRefusal | DoneAnswer | DescribeAnswer | ReadAnswer | SeriesAnswer
