"""What a device is set to in one direction, as drivers get it by `set` and give it by `read`. Pure.

In: one direction of a link, or a driver's JSON. Out: `Settings`, their JSON, and what differs between two in words.
The stages are those of the plan (labs/link).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ewan.labs.base.typed import read_typed
from ewan.labs.link import Delay, Direction, Loss, Queue
from ewan.labs.link.change import LIVE


@dataclass(frozen=True, slots=True)
class Settings:
    """One direction; `queue` is None where the device has none to set."""

    rate_bps: int
    delay: Delay
    reorder: bool
    loss: Loss
    corrupt_ppb: int
    duplicate_ppb: int
    queue: Queue | None

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


NAMES = tuple(each.name for each in fields(Settings))


def settings_of(direction: Direction, *, queue: bool) -> Settings:
    """What a driver is asked for; without a queue where the device has none to set."""
    asked = Settings(**{name: getattr(direction, name) for name in NAMES})
    return asked if queue else replace(asked, queue=None)


def read_settings(data: Any, where: str) -> Settings:
    """ValueError, one line, for what is none."""
    found: Settings = read_typed(Settings, data, where)
    return found


def words(settings: Settings) -> dict[str, str]:
    """Each setting as a description writes it."""
    asked = {key: row for key, row in LIVE.items() if row.device and row.words is not None}
    said = {
        key: row.said(settings) for key, row in asked.items() if settings.queue is not None or "queue" not in row.plan
    }
    del said["reorder"]
    return said | {"delay": said["delay"] + (" reorder" if settings.reorder else "")}


def differences(wanted: Settings, found: Settings) -> dict[str, tuple[str, str]]:
    """By key what was wanted and what was found, where they differ."""
    here, there = words(wanted), words(found)
    return {key: (here[key], there.get(key, "none")) for key in here if here[key] != there.get(key, "none")}
