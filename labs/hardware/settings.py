"""The settings of a device in one direction, as drivers receive them by `set` and return them by `read`. Pure.

In: one direction of a link, or a driver's JSON. Out: `DeviceSettings`, their JSON, and what differs between two in
words. The stages are those of the plan (labs/link).
"""

from __future__ import annotations

from typing import Any

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, replace
from ewan.labs.link import Delay, Direction, Loss, Queue
from ewan.labs.link.change import LIVE


class DeviceSettings(Struct):
    """One direction; `queue` is None where the device has none to set."""

    rate_bps: int
    delay: Delay
    reorder: bool
    loss: Loss
    corrupt_ppb: int
    duplicate_ppb: int
    queue: Queue | None


NAMES = DeviceSettings.__struct_fields__


def settings_of(direction: Direction, *, queue: bool) -> DeviceSettings:
    """The settings to request from a driver; without a queue if the device has none that can be set."""
    asked = DeviceSettings(**{name: getattr(direction, name) for name in NAMES})
    return asked if queue else replace(asked, queue=None)


def read_settings(data: Any, where: str) -> DeviceSettings:
    """ValueError, one line, for any other value."""
    return codec.from_data(DeviceSettings, data, where)


def words(settings: DeviceSettings) -> dict[str, str]:
    """Each setting as a description writes it."""
    asked = {key: row for key, row in LIVE.items() if row.device and row.words is not None}
    said = {
        key: row.said(settings) for key, row in asked.items() if settings.queue is not None or "queue" not in row.plan
    }
    del said["reorder"]
    return said | {"delay": said["delay"] + (" reorder" if settings.reorder else "")}


def differences(wanted: DeviceSettings, found: DeviceSettings) -> dict[str, tuple[str, str]]:
    """By key what was wanted and what was found, where they differ."""
    here, there = words(wanted), words(found)
    return {key: (here[key], there.get(key, "none")) for key in here if here[key] != there.get(key, "none")}
