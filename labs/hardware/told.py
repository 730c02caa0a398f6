"""What the keeper of a device tells of it, when it is asked over its socket (labs/runtime/keeper.py).

In: an answer. Out: its values; ValueError for an answer of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.hardware.abilities import Abilities
from ewan.labs.hardware.account import Fault
from ewan.labs.hardware.counts import DeviceCount
from ewan.labs.hardware.settings import DeviceSettings


class DeviceTold(Struct, forbid_unknown_fields=False):
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


class DeviceSilent(Struct):
    """Why its keeper could not be asked."""

    link: str
    error: str


class DeviceCounted(Struct, forbid_unknown_fields=False):
    """What it counts, by direction."""

    link: str
    counters: dict[str, DeviceCount]


class _Sent(Struct):
    out_bytes: tuple[int, ...]


class DeviceSeries(Struct, forbid_unknown_fields=False):
    """Its milliseconds from `first_ms` until `end_ms`."""

    link: str
    first_ms: int
    end_ms: int
    forward: _Sent
    backward: _Sent


def device_of(answer: Mapping[str, Any]) -> DeviceTold | DeviceSilent:
    """An answer to `device`, or what stands in its place in a certificate."""
    if "error" in answer:
        return codec.from_data(DeviceSilent, answer, "device")
    return codec.from_data(DeviceTold, answer, "device")
