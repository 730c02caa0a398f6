"""What a device is set to in one direction, as drivers get it by `set` and give it by `read`. Pure.

In: one direction of a link, or a driver's JSON. Out: `Settings`, their JSON, and what differs between two in words.
The stages are those of the plan (labs/link).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ewan.labs.base.typed import read_typed
from ewan.labs.base.units import Fraction, Rate
from ewan.labs.link import Delay, Direction, Loss, Queue
from ewan.labs.link import delay as delays
from ewan.labs.link import loss as losses
from ewan.labs.link.queue import limit_words


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


def settings_of(direction: Direction, *, queue: bool) -> Settings:
    """What a driver is asked for; without a queue where the device has none to set."""
    return Settings(
        rate_bps=direction.rate_bps,
        delay=direction.delay,
        reorder=direction.reorder,
        loss=direction.loss,
        corrupt_ppb=direction.corrupt_ppb,
        duplicate_ppb=direction.duplicate_ppb,
        queue=direction.queue if queue else None,
    )


def read_settings(data: Any, where: str) -> Settings:
    """ValueError, one line, for what is none."""
    found: Settings = read_typed(Settings, data, where)
    return found


def words(settings: Settings) -> dict[str, str]:
    """Each setting as a description writes it."""
    said = {
        "rate": str(Rate(settings.rate_bps)),
        "delay": delays.words(settings.delay) + (" reorder" if settings.reorder else ""),
        "loss": losses.words(settings.loss) or "0%",
        "corrupt": str(Fraction(settings.corrupt_ppb)),
        "duplicate": str(Fraction(settings.duplicate_ppb)),
    }
    if settings.queue is not None:
        said["buffer"] = limit_words(settings.queue)
        said["queue"] = settings.queue.discipline.words
    return said


def differences(wanted: Settings, found: Settings) -> dict[str, tuple[str, str]]:
    """By key what was wanted and what was found, where they differ."""
    here, there = words(wanted), words(found)
    return {key: (here[key], there.get(key, "none")) for key in here if here[key] != there.get(key, "none")}
