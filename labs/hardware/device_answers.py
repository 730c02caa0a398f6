"""Answers of the keeper of a device to questions over its socket (labs/runtime/keeper.py).

In: an answer. Out: its values.
"""

from __future__ import annotations

from ewan.labs.base.codec import Struct
from ewan.labs.hardware.abilities import Abilities
from ewan.labs.hardware.account import Fault
from ewan.labs.hardware.counts import DeviceCount
from ewan.labs.hardware.readout import RowStretch
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import Change
from ewan.labs.link.direction import Heading


class DeviceStatus(Struct, forbid_unknown_fields=False):
    """The device, what was asked of it and what it says by direction, and its faults; whether it `answers` now."""

    link: str
    driver: str
    model: str
    device: str
    abilities: Abilities
    answers: bool
    requested: dict[str, DeviceSettings]
    says: dict[str, DeviceSettings]
    faults: tuple[Fault, ...]


class SilentDevice(Struct):
    """A device whose keeper did not answer, and why."""

    link: str
    error: str


class DeviceCounters(Struct, forbid_unknown_fields=False):
    """The counters of a device, by direction."""

    link: str
    counters: dict[str, DeviceCount]


class ByteSeries(Struct):
    """The bytes that left in one direction, by period."""

    out_bytes: tuple[int, ...]


class DeviceSeries(Struct, forbid_unknown_fields=False):
    """The milliseconds of a device from `first_ms` until `end_ms`."""

    link: str
    first_ms: int
    end_ms: int
    forward: ByteSeries
    backward: ByteSeries


class DeviceRows(Struct, forbid_unknown_fields=False):
    """Rows with their times; `next`: the number of the row that comes after all of them."""

    link: str
    period_ns: int
    next: int
    stretches: tuple[RowStretch, ...]


class DeviceSet(Struct):
    """`at_ns`: when the change is due, since the keeper began."""

    at_ns: int


class DeviceChange(Struct):
    """A change that was made: when, since the keeper began, and how long the device took."""

    link: str
    direction: Heading
    change: Change
    applied_ns: int
    took_ns: int


class DeviceChanges(Struct):
    """All changes that were made, in their order."""

    changes: tuple[DeviceChange, ...]
