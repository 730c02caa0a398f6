"""The common part of this project's drivers: lines in, lines out, errors in one line.

In: a `Device`. Out: the protocol of docs/how-to/labs/hardware.md on standard input and output, until the input ends."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Protocol

from ewan.extras.devices.answers import (
    DescribeAnswer,
    DoneAnswer,
    DriverAnswer,
    DriverRefusal,
    ReadAnswer,
    SeriesAnswer,
)
from ewan.labs.base import codec
from ewan.labs.base.reading import one_line
from ewan.labs.hardware import requests
from ewan.labs.hardware.abilities import Abilities, beyond, rounded
from ewan.labs.hardware.driver import PROTOCOL, DeviceDescription, DeviceReading, SeriesRows
from ewan.labs.hardware.requests import (
    DescribeRequest,
    DriverRequest,
    ReadRequest,
    ResetRequest,
    SeriesRequest,
    SetRequest,
)
from ewan.labs.hardware.settings import DeviceSettings

LONGEST = 1 << 20  # bytes of a request
MOST_SHOWN = 400


class DeviceRefusedError(Exception):
    """A request that cannot be fulfilled; the message is one line."""


class Device(Protocol):
    """A device behind a driver. Each method raises RefusedError, or OSError where the device cannot be reached.

    `serve` has refused values beyond the device's abilities before it calls a method, and rounded those between its
    steps."""

    def describe(self, address: str, model: str | None, options: Mapping[str, str]) -> DeviceDescription:
        """Opens the device."""

    def set(self, heading: str, settings: DeviceSettings) -> None:
        """Sets one direction to values that the device has."""

    def read(self) -> DeviceReading:
        """Reads the settings that the device reports."""

    def series(self, since: int) -> SeriesRows:
        """The bytes that passed in the periods from number `since` on, as far as the device still knows."""

    def reset(self) -> None:
        """Brings the device to its defaults."""


def serve(device: Device) -> None:
    """Answers until the input ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    known: Abilities | None = None
    while line := source.readline(LONGEST):
        if not line.endswith(b"\n"):
            while (rest := source.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
            answer: DriverAnswer = _error("a request is one line of at most 1 MiB")
        else:
            answer = _answer(device, line, known)
            if isinstance(answer, DescribeAnswer):
                known = answer.abilities
        sink.write(codec.line(answer))
        sink.flush()


def _answer(device: Device, line: bytes, known: Abilities | None) -> DriverAnswer:
    try:
        return _done(device, requests.read(line), known)
    except (ValueError, RecursionError) as error:
        return _error(str(error) or "no JSON")
    except DeviceRefusedError as error:
        return _error(str(error))
    except OSError as error:
        return _error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))


def _done(device: Device, request: DriverRequest, known: Abilities | None) -> DriverAnswer:
    if isinstance(request, DescribeRequest):
        if request.protocol != PROTOCOL:
            raise DeviceRefusedError(f"this driver speaks protocol {PROTOCOL}")
        return DescribeAnswer.of(device.describe(request.address, request.model, request.options))
    if known is None:
        raise DeviceRefusedError("the first request is describe")
    match request:
        case SetRequest():
            if found := beyond(request.settings, known):
                raise DeviceRefusedError(f"{found[0]}: {found[1]}")
            device.set(request.direction, rounded(request.settings, known))
        case ReadRequest():
            return ReadAnswer.of(device.read())
        case SeriesRequest():
            return SeriesAnswer.of(device.series(request.since))
        case ResetRequest():
            device.reset()
    return DoneAnswer(True)


def _error(why: str) -> DriverRefusal:
    return DriverRefusal(False, one_line(why, MOST_SHOWN) or "refused")
