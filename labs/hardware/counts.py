"""Compares the counters of a device with those of our cards behind it, since the lab came up. Pure: readings and time
come in.

In: counters of a device (`read` of its driver) with the time of each reading, and of our cards. Out: for each direction
packets, bytes and drops since the lab came up, and the rate between the last readings.

A device counts since it was reset. Where a counter has fallen, it was reset since: all that it says then is of the lab.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from ewan.labs.base.units import NS_PER_MS, mean_rate_bps
from ewan.labs.hardware.driver import Counters

APART_NS = 400 * NS_PER_MS
"""Between the two readings of a rate, at least: an answer may be late by some ms."""
KEPT = 8


@dataclass(frozen=True, slots=True)
class CardCount:
    """The packets that arrived at the card behind the device; bytes as the link's framing counts them, without
    padding."""

    packets: int
    bytes: int


class DeviceCount(Counters):
    """The counters of one direction since the lab came up, beside what our card behind the device counted; `rate_bps`:
    None before it was read twice."""

    came_packets: int
    came_bytes: int
    rate_bps: int | None


@dataclass(slots=True)
class DeviceCounts:
    """The counters of one device, both directions."""

    _began: Mapping[str, Counters] = field(default_factory=dict)
    _came: Mapping[str, CardCount] = field(default_factory=dict)
    _readings: deque[tuple[int, Mapping[str, Counters]]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def begin(self, counters: Mapping[str, Counters], came: Mapping[str, CardCount]) -> None:
        """The lab is up: what was counted before is not the lab's."""
        self._began, self._came = counters, came

    def read(self, now_ns: int, counters: Mapping[str, Counters]) -> None:
        """The device was read; nothing where it does not count."""
        if counters:
            self._readings.append((now_ns, counters))

    def told(self, came: Mapping[str, CardCount]) -> dict[str, DeviceCount]:
        """By direction, `came` being what our cards count now. Empty where it does not count."""
        if not self._readings:
            return {}
        return {heading: self._of(heading, came[heading]) for heading in self._readings[-1][1]}

    def _of(self, heading: str, came: CardCount) -> DeviceCount:
        now = self._readings[-1][1][heading]
        before = self._came.get(heading, CardCount(0, 0))
        counted = _since(self._began.get(heading), now)
        ours = came.packets - before.packets, came.bytes - before.bytes
        device = counted.out_packets, counted.out_bytes, counted.dropped_packets
        return DeviceCount(*device, *ours, self._rate(heading))

    def _rate(self, heading: str) -> int | None:
        last_ns, last = self._readings[-1]
        earlier = [(at, each) for at, each in self._readings if last_ns - at >= APART_NS]
        if not earlier:
            return None
        at, counters = earlier[-1]
        return round(mean_rate_bps(_since(counters[heading], last[heading]).out_bytes, last_ns - at))


def _since(before: Counters | None, now: Counters) -> Counters:
    if before is None:
        return now
    grown = [getattr(now, name) - getattr(before, name) for name in Counters.__struct_fields__]
    return now if min(grown) < 0 else Counters(*grown)
