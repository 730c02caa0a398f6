"""Compares the settings that were requested of a device with its answers, and finds its faults. Pure: time is passed
in.

In: each setting of a direction with what was read after it, later readings, errors of the driver. Out: faults, told
apart: `dead`, no answer; `rounding`, it took a value and has another one than its steps explain; `reset`, its report
differs from the report after the last setting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ewan.labs.base.codec import Struct, replace
from ewan.labs.hardware.abilities import Abilities, rounded
from ewan.labs.hardware.driver import HEADINGS, DeviceReading, DriverError
from ewan.labs.hardware.settings import DeviceSettings, differences

FaultKind = Literal["dead", "rounding", "reset"]
MOST_FAULTS = 256


class Fault(Struct):
    """`time_s`: since the epoch. `ended_s`: when it was over; None: it lasts."""

    kind: FaultKind
    time_s: float
    said: str
    ended_s: float | None


@dataclass(slots=True)
class Account:
    """The account of one device; `requested` and `answered` are by direction."""

    abilities: Abilities
    requested: dict[str, DeviceSettings] = field(default_factory=dict)
    answered: dict[str, DeviceSettings] = field(default_factory=dict)
    """The device's answer after the last setting of a direction."""
    said: dict[str, DeviceSettings] = field(default_factory=dict)
    """The device's last answer."""
    faults: list[Fault] = field(default_factory=list)

    def was_set(self, heading: str, wanted: DeviceSettings, reading: DeviceReading, now_s: float) -> None:
        """One direction was set, and the device was read then."""
        self.requested[heading] = wanted
        self.answered[heading] = reading.of(heading)
        self._end("rounding", now_s, heading)
        self._end("reset", now_s, heading)
        wrong = differences(rounded(wanted, self.abilities), reading.of(heading))
        for key, (asked, found) in wrong.items():
            self._add("rounding", now_s, f"{heading}: {key} {asked} was set, and the device says {found}")
        self.was_read(reading, now_s)

    def was_read(self, reading: DeviceReading, now_s: float) -> None:
        """The device answered."""
        self._end("dead", now_s)
        for heading in HEADINGS:
            self.said[heading] = reading.of(heading)
            if heading not in self.answered:
                continue
            changed = differences(self.answered[heading], reading.of(heading))
            if not changed:
                self._end("reset", now_s, heading)
                continue
            words = ", ".join(f"{key} {was} became {found}" for key, (was, found) in changed.items())
            said = f"{heading}: {words}, and it had not been set"
            known = [each for each in self.lasting if each.kind == "reset" and each.said.startswith(heading)]
            if not known:
                self._add("reset", now_s, said)
            else:  # the first reading may have come in its midst
                self.faults = [replace(each, said=said) if each in known else each for each in self.faults]

    def failed(self, error: DriverError, now_s: float) -> None:
        """The driver gave no answer, or a refusal to read."""
        if not any(each.kind == "dead" for each in self.lasting):
            self._add("dead", now_s, str(error))

    @property
    def lasting(self) -> list[Fault]:
        """Faults that are not over."""
        return [each for each in self.faults if each.ended_s is None]

    @property
    def dead(self) -> bool:
        """Return whether the device does not answer now."""
        return any(each.kind == "dead" for each in self.lasting)

    def _add(self, kind: FaultKind, now_s: float, said: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(kind, now_s, said, None))

    def _end(self, kind: FaultKind, now_s: float, heading: str = "") -> None:
        self.faults = [
            Fault(each.kind, each.time_s, each.said, now_s)
            if each.kind == kind and each.ended_s is None and each.said.startswith(heading)
            else each
            for each in self.faults
        ]
