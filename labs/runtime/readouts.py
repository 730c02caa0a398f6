"""The milliseconds of a lab's devices during a run, into the run's directory: device.csv, of the table `device`.

In: a state directory and its plan; the keepers, which are asked now and then, since they keep two minutes. Out: rows
with times from T0, none before it. A lab without a device that tells its milliseconds leaves no file.

A keeper's times are of CLOCK_MONOTONIC. T0 is known as time of day (commands.json): the difference of the two clocks is
taken when the run begins. By how much it is another one at the end is added to the uncertainty.
"""

from __future__ import annotations

import csv
import io
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.writing import anew
from ewan.labs.hardware.device_answers import DeviceRows
from ewan.labs.plan import Plan
from ewan.labs.runtime import devices
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.requests import ReadoutRequest

FILE = "device.csv"
COLUMNS = ("link", "direction", "time_ns", "uncertainty_ns", "interval_ns", "out_bytes", "restarted")
EVERY_NS = 5 * NS_PER_SECOND
"""Between two questions to a keeper while a run goes on."""
ANSWERS_S = 15.0
"""A driver answers within 10 s, or is given up."""


@dataclass(slots=True)
class Stretch:
    """Periods that follow one another; see `ewan.labs.hardware.readout.Readout.stretches`."""

    period_ns: int
    begin_ns: int
    uncertainty_ns: int
    restarted: bool
    sent: dict[str, array[int]]


@dataclass(slots=True)
class Readouts:
    """`ask`: the keeper of a link. `next`: of each device the number of the row that is asked for next."""

    ask: Callable[[str, ReadoutRequest], DeviceRows]
    next: dict[str, int]
    now_ns: Callable[[], int] = time.monotonic_ns
    apart_ns: Callable[[], int] = lambda: _apart_ns()
    """Time of day less CLOCK_MONOTONIC."""
    found: dict[str, list[Stretch]] = field(default_factory=dict)
    _due_ns: int = 0
    _apart_ns: int = 0

    def __post_init__(self) -> None:
        """Set the next row of each device; a device that has no milliseconds, or does not answer now, is left out."""
        self._apart_ns = self.apart_ns()
        for link in list(self.next):
            try:
                self.next[link] = self.ask(link, ReadoutRequest(-1)).next
            except LabError:
                del self.next[link]
        self._due_ns = self.now_ns() + EVERY_NS

    def fetch(self, *, now: bool = False) -> None:
        """Fetch new rows, if it is time to ask. A device that does not answer is asked again later."""
        if not self.next or (not now and self.now_ns() < self._due_ns):
            return
        for link, since in self.next.items():
            try:
                told = self.ask(link, ReadoutRequest(since))
            except LabError:
                continue
            self.next[link] = told.next
            for each in told.stretches:
                sent = {"forward": array("q", each.forward), "backward": array("q", each.backward)}
                known = each.begin_ns, each.uncertainty_ns, each.restarted
                self.found.setdefault(link, []).append(Stretch(told.period_ns, *known, sent))
        self._due_ns = self.now_ns() + EVERY_NS

    def write(self, directory: Path) -> None:
        """Write the file if any device answered and T0 is known."""
        self.fetch(now=True)
        try:
            t0_unix_ns = orjson.loads((directory / "commands.json").read_bytes())["t0_unix_ns"]
        except (OSError, KeyError, TypeError, orjson.JSONDecodeError):
            return
        if t0_unix_ns is None or not self.found:
            return
        t0_ns, stepped_ns = t0_unix_ns - self._apart_ns, abs(self.apart_ns() - self._apart_ns)
        with io.TextIOWrapper(anew(directory / FILE), newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(COLUMNS)
            for link, stretches in self.found.items():
                for each in stretches:
                    _write(lines.writerow, link, each, t0_ns, stepped_ns)


def _write(row: Callable[[tuple[Any, ...]], Any], link: str, each: Stretch, t0_ns: int, stepped_ns: int) -> None:
    before = each.begin_ns - t0_ns
    for heading, sent in each.sent.items():
        for number, count in enumerate(sent, 1):
            end = before + number * each.period_ns
            if end > 0:
                restarted = "true" if each.restarted and number == 1 else "false"
                row((link, heading, end, each.uncertainty_ns + stepped_ns, each.period_ns, count, restarted))


def _apart_ns(tries: int = 5) -> int:
    """The difference (ns) between time of day and monotonic time. Of several tries the one with the least time between
    its clocks counts: a busy host may take the CPU in between."""
    found = []
    for _ in range(tries):
        before, now, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        found.append((after - before, now - (before + after) // 2))
    return min(found)[1]


def of_devices(directory: Path, plan: Plan) -> Readouts:
    """The readouts of the lab's devices from now on."""
    return Readouts(
        lambda link, request: devices.ask(directory, link, request, ANSWERS_S), {each.link: 0 for each in plan.hardware}
    )
