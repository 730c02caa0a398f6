"""Speaking to a driver: a program that is started without a shell and answers one JSON line to each JSON line.

In: the program's words, requests. Out: answers, checked; `DriverError` tells by its `fault` what was wrong. Answers are
bounded in size and time. The program runs as the user who called sudo, not as root: it is foreign code, and may
be as long as it likes to be.
"""

from __future__ import annotations

import os
import pwd
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

import orjson

from ewan.labs.base import codec, ownership
from ewan.labs.base.codec import JsonValue, Struct, tags
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import one_line
from ewan.labs.hardware.abilities import Abilities, read_abilities
from ewan.labs.hardware.requests import (
    DescribeRequest,
    DriverRequest,
    ReadRequest,
    ResetRequest,
    SeriesRequest,
    SetRequest,
)
from ewan.labs.hardware.settings import DeviceSettings, read_settings
from ewan.labs.link.direction import Heading

PROTOCOL = 1
OPENS_S = 30.0
"""For the answer to `describe`, which opens the device."""
ANSWERS_S = 10.0
"""For any other answer."""
ENDS_S = 2.0
"""For the program to end after its input has."""
LONGEST = 4 << 20
"""Bytes of an answer."""
MOST_SHOWN = 200
KEPT = ("PATH", "LANG", "LC_ALL", "SSH_AUTH_SOCK", "EWAN_SCHED")
"""The variables of our environment that a driver receives."""

Fault = Literal["silent", "ended", "nonsense", "refused", "missing"]
"""No answer in time; the program ended; no answer of the protocol; `ok` is false; the program cannot be started."""
HEADINGS = ("forward", "backward")


class DriverError(UserError):
    """One line; `fault` says of which kind it is. The driver's own words are in `said` where it refused."""

    def __init__(self, fault: Fault, message: str, said: str = "") -> None:
        super().__init__(one_line(message))
        self.fault: Fault = fault
        self.said = said


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """The answer to `describe`: `device` names the very device, as far as it can."""

    model: str
    device: str
    abilities: Abilities


class Counters(Struct):
    """Packets and bytes that left the device in one direction since it was reset, and those that it dropped."""

    out_packets: int
    out_bytes: int
    dropped_packets: int


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """The answer to `read`: what the device says it does now."""

    forward: DeviceSettings
    backward: DeviceSettings
    counters: Mapping[str, Counters]
    """By direction; empty where it does not count."""

    def of(self, heading: str) -> DeviceSettings:
        """The settings of one direction."""
        return self.forward if heading == "forward" else self.backward


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """The answer to `series`: bytes that left in each period, the first of them period number `first`.

    Periods are counted from the device's start; bytes as its framing counts them.
    """

    period_ns: int
    first: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]

    def of(self, heading: str) -> tuple[int, ...]:
        """The bytes of one direction, by period."""
        return self.forward if heading == "forward" else self.backward


@dataclass(frozen=True, slots=True)
class User:
    """Whom a program runs as."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def caller(environment: Mapping[str, str]) -> User | None:
    """The user who called sudo; None: the program runs as we do."""
    uid, gid = ownership.caller(environment) or (0, 0)
    if uid == 0:
        return None
    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        return User(uid, gid, (gid,), "/")
    return User(uid, gid, tuple(os.getgrouplist(found.pw_name, gid)), found.pw_dir)


class Driver:
    """A driver that runs. Not to be used by two threads at once; a context, at whose end it ends."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        folder: Path = Path("/"),
        user: User | None = None,
        environment: Mapping[str, str],
        stderr: IO[bytes] | int = subprocess.DEVNULL,
    ) -> None:
        """Starts it; DriverError where it cannot be."""
        self.name = Path(argv[-1] if "-m" in argv[:-1] else argv[0]).name
        told = {key: environment[key] for key in KEPT if key in environment}
        told["HOME"] = environment.get("HOME", "/") if user is None else user.home
        try:
            self._process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=folder,
                env=told,
                start_new_session=True,
                umask=0o077,
                bufsize=0,
                user=None if user is None else user.uid,
                group=None if user is None else user.gid,
                extra_groups=None if user is None else list(user.groups),
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            whose = "" if user is None else f" as user {user.uid}"
            raise DriverError("missing", f"driver {argv[0]} cannot be started{whose}: {why}") from None
        self._rest = b""

    def __enter__(self) -> Driver:
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Ends it."""
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the program."""
        return self._process.pid

    def close(self) -> None:
        """Its input ends, and so shall it; what is still there then is killed, with all that it started."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process.stdout.close()

    def kill(self) -> None:
        """Ends it at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def describe(self, address: str, model: str | None, options: Mapping[str, str]) -> DeviceDescription:
        """Opens the device at an address; the first request."""
        answer = self.ask(DescribeRequest(PROTOCOL, address, model, options), OPENS_S)
        if answer.get("protocol") != PROTOCOL:
            raise self._nonsense("describe", f"protocol is {answer.get('protocol')!r}, this version speaks {PROTOCOL}")
        self._only("describe", answer, {"protocol", "model", "device", "abilities"})
        with self._read("describe"):
            abilities = read_abilities(answer["abilities"], "abilities")
        named = answer["model"], answer["device"]
        if not all(isinstance(each, str) for each in named):
            raise self._nonsense("describe", "model and device are texts")
        return DeviceDescription(str(named[0]), one_line(str(named[1]), MOST_SHOWN), abilities)

    def set(self, heading: str, settings: DeviceSettings) -> None:
        """Sets one direction, as a whole."""
        self._only("set", self.ask(SetRequest(cast(Heading, heading), settings)), set())

    def read(self) -> DeviceReading:
        """The present settings and counters of the device."""
        answer = self.ask(ReadRequest())
        self._only("read", answer, {"forward", "backward"}, {"counters"})
        with self._read("read"):
            forward, backward = (read_settings(answer[each], each) for each in HEADINGS)
            counted = codec.from_data(dict[str, Counters], answer.get("counters") or {}, "counters")
            counters = {} if not counted else {each: counted[each] for each in HEADINGS}
        return DeviceReading(forward, backward, counters)

    def series(self, since: int) -> SeriesRows:
        """The bytes of the periods from number `since` on, as far as the device keeps them."""
        answer = self.ask(SeriesRequest(since))
        self._only("series", answer, {"period_ns", "first", *HEADINGS})
        try:
            told = codec.from_data(_Series, answer, "")
        except ValueError as error:
            raise self._nonsense("series", f"it lacks a list of out_bytes for each direction ({error})") from None
        rows = SeriesRows(told.period_ns, told.first, told.forward.out_bytes, told.backward.out_bytes)
        if len(rows.forward) != len(rows.backward) or rows.first < since:
            raise self._nonsense("series", "its directions are not of one length, or begin before what was asked for")
        return rows

    def reset(self) -> None:
        """Brings the device to its defaults, and its periods and counters to nothing."""
        self._only("reset", self.ask(ResetRequest()), set())

    def ask(self, request: DriverRequest, longest_s: float = ANSWERS_S) -> dict[str, JsonValue]:
        """One request, one answer, whose `ok` is true."""
        what = tags(type(request))[0]
        answer = self.exchange(codec.line(request), what, longest_s)
        if answer.get("ok") is not True:
            said = answer.get("error")
            if answer.get("ok") is not False or not isinstance(said, str) or not said:
                raise self._nonsense(what, 'neither "ok": true nor "ok": false with an "error"')
            said = one_line(said, MOST_SHOWN)
            raise DriverError("refused", f"driver {self.name} refuses {what}: {said}", said)
        return answer

    def exchange(self, line: bytes, what: str, longest_s: float = ANSWERS_S) -> dict[str, JsonValue]:
        """Sends a line, as it is, and gives the answer, whatever it says."""
        deadline = time.monotonic() + longest_s
        self._send(line, what, deadline)
        text = self._line(what, deadline, longest_s)
        try:
            answer: Any = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            shown = one_line(text[:MOST_SHOWN].decode(errors="replace"), 60)
            raise self._nonsense(what, f"no JSON ({error}): {shown}") from None
        if not isinstance(answer, dict):
            raise self._nonsense(what, "no JSON object")
        return answer

    def _send(self, line: bytes, what: str, deadline: float) -> None:
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        os.set_blocking(descriptor, False)
        left = memoryview(line)
        while left:
            if not select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))[1]:
                raise self._silent(what, "does not read")
            try:
                left = left[os.write(descriptor, left) :]
            except BrokenPipeError:
                raise self._ended(what) from None

    def _line(self, what: str, deadline: float, longest_s: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while (end := self._rest.find(b"\n")) < 0:
            if len(self._rest) > LONGEST:
                raise self._nonsense(what, f"more than {LONGEST} bytes in one line")
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise self._silent(what, f"gives no answer within {longest_s:g} s")
            part = os.read(descriptor, 1 << 16)
            if not part:
                raise self._ended(what)
            self._rest += part
        line, self._rest = self._rest[:end], self._rest[end + 1 :]
        return line

    def _only(self, what: str, answer: Mapping[str, JsonValue], needed: Set[str], more: Set[str] = frozenset()) -> None:
        """An answer has these keys and no others."""
        keys = answer.keys() - {"ok"}
        if missing := sorted(needed - keys):
            raise self._nonsense(what, f"its answer lacks {missing[0]!r}")
        if unknown := sorted(keys - needed - more):
            raise self._nonsense(what, f"its answer has an unknown key {unknown[0]!r}")

    def _read(self, what: str) -> _Reading:
        return _Reading(self, what)

    def _silent(self, what: str, why: str) -> DriverError:
        return DriverError("silent", f"driver {self.name} {why} to {what}")

    def _ended(self, what: str) -> DriverError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDS_S)
        return DriverError("ended", f"driver {self.name} ended at {what}, with status {self._process.returncode}")

    def _nonsense(self, what: str, why: str) -> DriverError:
        return DriverError("nonsense", f"driver {self.name} answers {what} with {why}")


class _Reading:
    """Turns the ValueError of an answer that is wrong into the driver's error."""

    def __init__(self, driver: Driver, what: str) -> None:
        self._driver, self._what = driver, what

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (ValueError, KeyError, TypeError)):
            why = one_line(f"what is wrong: {error}", MOST_SHOWN)
            raise DriverError("nonsense", f"driver {self._driver.name} answers {self._what} with {why}") from None


class _ByteSeries(Struct, forbid_unknown_fields=False):
    out_bytes: tuple[int, ...]


class _Series(Struct, forbid_unknown_fields=False):
    period_ns: int
    first: int
    forward: _ByteSeries
    backward: _ByteSeries
