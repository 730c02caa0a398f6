"""The keeper of a device: the process of a lab that holds the driver of an external emulator, from `up` to `down`.

In: a lab's state directory, a link of its plan that is a device. Out: the socket device-LINK.sock, on which it answers
as a spinner does: one JSON object a line, `set`, `changes`, `series`, `readout`, `device`, `counters`. It reads the
device each second, so that what changes by itself is known, and fetches its milliseconds before they are forgotten. At
its end the device is reset.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from ewan.labs import plan as plans
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.reading import one_line
from ewan.labs.base.units import NS_PER_DAY, NS_PER_MS, NS_PER_SECOND
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.abilities import refusal
from ewan.labs.hardware.account import Account
from ewan.labs.hardware.counts import CardCount, DeviceCounts
from ewan.labs.hardware.device_answers import (
    ByteSeries,
    DeviceChange,
    DeviceChanges,
    DeviceCounters,
    DeviceRows,
    DeviceSeries,
    DeviceSet,
    DeviceStatus,
)
from ewan.labs.hardware.driver import HEADINGS, DeviceDescription, DeviceReading, Driver, DriverError, caller
from ewan.labs.hardware.readout import Readout
from ewan.labs.hardware.requests import ResetRequest
from ewan.labs.hardware.settings import settings_of
from ewan.labs.link import Change, Direction
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Hardware, Link
from ewan.labs.runtime import control
from ewan.labs.runtime.requests import (
    ChangesRequest,
    CountersRequest,
    DeviceSeriesRequest,
    KeeperRequest,
    LinkSetRequest,
    ReadoutRequest,
    read_keeper_request,
)

READS_S = 1.0
RETRIES_S = 1.0
"""Between attempts at a device that does not answer."""
FAREWELL_S = 3.0
LONGEST_WAIT_NS = NS_PER_DAY


class RefusedError(Exception):
    """Why a request is not done, in one line."""


class Keeper:
    """One device. All is done by one thread, one thing after the other: a driver answers one request at a time."""

    def __init__(
        self,
        link: Link,
        hardware: Hardware,
        environment: Mapping[str, str],
        came: Callable[[], Mapping[str, CardCount]] = dict,
    ) -> None:
        """`came`: what our cards behind the device count now."""
        self._link, self._hardware, self._environment = link, hardware, environment
        self._driver: Driver | None = None
        self._now: dict[Heading, Direction] = {"forward": link.forward, "backward": link.backward}
        self._waiting: list[tuple[int, Heading, Change]] = []
        self.changes: list[DeviceChange] = []
        self._began_ns = time.monotonic_ns()
        self._retry_s = 0.0
        self._next_look_s = time.monotonic() + READS_S
        self.described = self._open()
        self.account = Account(self.described.abilities)
        series = self.described.abilities.series
        self._readout = None if series is None else Readout(series.period_ns, series.rows)
        self._came, self._counts = came, DeviceCounts()

    def _open(self) -> DeviceDescription:
        argv, folder = catalogue.argv(self._hardware.driver)
        user = caller(self._environment)
        self._driver = Driver(argv, folder=folder, user=user, environment=self._environment, stderr=sys.stderr.fileno())
        return self._driver.describe(self._hardware.address, self._hardware.model, self._hardware.options)

    @property
    def _open_driver(self) -> Driver:
        if self._driver is None:
            lasting = [each.said for each in self.account.lasting if each.kind == "dead"]
            raise RefusedError(f"link {self._link.name}: the device does not answer: {lasting[-1] if lasting else ''}")
        return self._driver

    def begin(self) -> None:
        """Resets the device, and sets it as the plan has it; RefusedError for what the device itself cannot do."""
        for heading, direction in self._now.items():
            self._check(heading, direction)
        self._open_driver.reset()  # it may never have been set: `read` tells both directions
        for heading, direction in self._now.items():
            self._set(heading, direction)
        if self._readout is not None:
            # What it counted before the lab is not the lab's.
            self.fetch()
            self._readout.forget()
        if self.described.abilities.counters:
            self._counts.begin(self._read().counters, self._came())

    def _read(self) -> DeviceReading:
        """The present settings and counters of the device."""
        reading = self._open_driver.read()
        self.account.was_read(reading, time.time())
        self._counts.read(time.monotonic_ns(), reading.counters)
        return reading

    def _check(self, heading: str, direction: Direction) -> None:
        found = refusal(direction, self.described.abilities, self._hardware.own_queue)
        if found is not None:
            raise RefusedError(
                f"link {self._link.name} {heading}: {found[0]}: the device ({self.described.device}): {found[1]}"
            )

    def _set(self, heading: Heading, direction: Direction) -> None:
        wanted = settings_of(direction, queue=self.described.abilities.queue is not None)
        driver = self._open_driver
        try:
            driver.set(heading, wanted)
            self.account.was_set(heading, wanted, driver.read(), time.time())
        except DriverError as error:
            if error.fault != "refused":
                self._lost(error)
            raise RefusedError(f"link {self._link.name} {heading}: {error}") from None
        self._now[heading] = direction

    def _lost(self, error: DriverError) -> None:
        """The driver is no more to be trusted with a request: it is ended, and started again later."""
        self.account.failed(error, time.time())
        if self._driver is not None:
            self._driver.kill()
            self._driver.close()
            self._driver = None
        self._retry_s = time.monotonic() + RETRIES_S

    def work(self) -> float:
        """Makes the changes that are due, and looks at the device when it is time; gives the seconds until the next."""
        self.make_changes()
        if time.monotonic() >= self._next_look_s:
            self.look()
            self._next_look_s = time.monotonic() + (READS_S if self.described.abilities.series is None else READS_S / 4)
        times_s = [self._next_look_s, *(at_ns / NS_PER_SECOND for at_ns, _, _ in self._waiting)]
        return max(0.0, min(times_s) - time.monotonic())

    def make_changes(self) -> None:
        """Make the changes that are due. One that fails is reported with the reason."""
        now = time.monotonic_ns()
        due = sorted((each for each in self._waiting if each[0] <= now), key=lambda each: each[0])
        self._waiting = [each for each in self._waiting if each[0] > now]
        for _, heading, change in due:
            with suppress(RefusedError):
                self._change(heading, change)

    def look(self) -> None:
        """Reads the device, and starts the driver again where it was lost."""
        try:
            if self._driver is None:
                if time.monotonic() < self._retry_s:
                    return
                self.described = self._open()
            self._read()
            self.fetch()
        except DriverError as error:
            self._lost(error)

    def fetch(self) -> None:
        """The device's milliseconds since the last time."""
        if self._readout is not None:
            self._readout.fetch(self._open_driver.series, time.monotonic_ns)

    def answer(self, line: bytes) -> bytes:
        """To one request."""
        try:
            return control.accepted(self._answer(read_keeper_request(line)))
        except (ValueError, TypeError, KeyError, RefusedError, DriverError) as error:
            return control.refused(one_line(str(error)))

    def _answer(self, request: KeeperRequest) -> Struct:
        match request:
            case LinkSetRequest():
                return self._asked(request)
            case ChangesRequest():
                return DeviceChanges(tuple(self.changes))
            case DeviceSeriesRequest():
                return self._series(request.since_ms)
            case ReadoutRequest():
                return self._stretches(request.since)
            case CountersRequest():
                return self._counted()
            case _:
                self.look()
                return self.told()

    def told(self) -> DeviceStatus:
        """The device, what was asked of it and what it says, and its faults."""
        return DeviceStatus(
            link=self._link.name,
            driver=self._hardware.driver,
            model=self.described.model,
            device=self.described.device,
            abilities=self.described.abilities,
            answers=not self.account.dead,
            requested=self.account.requested,
            says=self.account.said,
            faults=tuple(self.account.faults),
        )

    def _asked(self, request: LinkSetRequest) -> DeviceSet:
        heading, in_ns = request.direction, request.in_ns
        if heading == "both":
            raise RefusedError(f"direction {heading!r}: write forward or backward")
        if not 0 <= in_ns <= LONGEST_WAIT_NS:
            raise RefusedError(f"in_ns {in_ns}: write at most a day")
        change = request.change
        self._check(heading, change.applied(self._now[heading]))
        if in_ns:
            self._waiting.append((time.monotonic_ns() + in_ns, heading, change))
        else:
            self._change(heading, change)
        return DeviceSet(time.monotonic_ns() + in_ns - self._began_ns)

    def _change(self, heading: Heading, change: Change) -> None:
        begun = time.monotonic_ns()
        self._set(heading, change.applied(self._now[heading]))
        took_ns = time.monotonic_ns() - begun
        self.changes.append(DeviceChange(self._link.name, heading, change, begun - self._began_ns, took_ns))

    def _series(self, since: int) -> DeviceSeries:
        known, readout = self.described.abilities.series, self._fetched()
        if known is None or known.period_ns != NS_PER_MS:
            raise RefusedError(f"link {self._link.name}: the device tells nothing of its milliseconds")
        begin, rows = readout.known(since + (readout.next if since < 0 else 0))  # below 0: the last so many
        columns = (ByteSeries(tuple(rows[heading])) for heading in HEADINGS)
        return DeviceSeries(self._link.name, begin, readout.next, *columns)

    def _counted(self) -> DeviceCounters:
        if not self.described.abilities.counters:
            raise RefusedError(f"link {self._link.name}: the device does not count")
        try:
            self._read()
        except DriverError as error:
            self._lost(error)
            raise
        return DeviceCounters(self._link.name, self._counts.told(self._came()))

    def _stretches(self, since: int) -> DeviceRows:
        """`since` below 0: nothing yet, but where to go on."""
        readout, known = self._fetched(), self.described.abilities.series
        assert known is not None
        found = () if since < 0 else tuple(readout.stretches(since))
        return DeviceRows(self._link.name, known.period_ns, readout.next, found)

    def _fetched(self) -> Readout:
        if self._readout is None:
            raise RefusedError(f"link {self._link.name}: the device tells nothing of its milliseconds")
        try:
            self.fetch()
        except DriverError as error:
            self._lost(error)
            raise
        return self._readout

    def close(self) -> None:
        """The device goes back to its defaults, if it answers soon."""
        if self._driver is not None:
            with suppress(DriverError):
                self._driver.ask(ResetRequest(), FAREWELL_S)
            self._driver.close()


def _came(binary: str, state: Path, link: str) -> dict[str, CardCount]:
    """RefusedError where the cards cannot be asked."""
    asked = subprocess.run([binary, "came", "--state", str(state), link], capture_output=True, check=False)
    try:
        return codec.decode(dict[str, CardCount], asked.stdout, "")
    except ValueError:
        said = asked.stderr.decode(errors="replace").strip() or f"status {asked.returncode}"
        raise RefusedError(f"link {link}: the cards behind its device: {one_line(said)}") from None


def main() -> int:
    """Serves one link's device until SIGTERM; the last line that it writes says why it ended."""
    parser = argparse.ArgumentParser()
    for option in ("--state", "--link", "--id", "--node-binary"):
        parser.add_argument(option, required=True)
    words = parser.parse_args()
    state = Path(words.state)
    plan = plans.from_json((state / "plan.json").read_bytes())
    link = next(each for each in plan.links if each.name == words.link)
    hardware = next(each for each in plan.hardware if each.link == words.link)
    ended, bell = socket.socketpair()
    bell.setblocking(False)
    signal.set_wakeup_fd(bell.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    keeper: Keeper | None = None
    try:
        keeper = Keeper(link, hardware, os.environ, lambda: _came(words.node_binary, state, words.link))
        keeper.begin()
        with control.listening(state / f"device-{words.link}.sock") as listener:  # it appears when the device is set
            control.serve(listener, ended, keeper.answer, keeper.work)
    except (DriverError, RefusedError) as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    finally:
        if keeper is not None:
            keeper.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
