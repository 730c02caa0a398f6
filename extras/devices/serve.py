"""What the drivers of this project have in common: lines in, lines out, errors in one line.

In: a `Device`. Out: the protocol of docs/hardware.md on standard input and output, until the input ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from ewan.labs.base.reading import one_line
from ewan.labs.hardware import requests
from ewan.labs.hardware.abilities import Abilities, beyond, read_abilities, rounded
from ewan.labs.hardware.driver import PROTOCOL
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


class RefusedError(Exception):
    """Why something cannot be done, in one line."""


class Device(Protocol):
    """What a driver drives. Each method raises RefusedError, or OSError where the device is not to be had.

    `serve` has refused what is beyond the device's abilities before it asks, and rounded what is between its steps.
    """

    def describe(self, address: str, model: str | None, options: Mapping[str, str]) -> Mapping[str, Any]:
        """Opens the device; gives `model`, `device`, `abilities` as the protocol has them."""

    def set(self, heading: str, settings: DeviceSettings) -> None:
        """Sets one direction to values that the device has."""

    def read(self) -> Mapping[str, Any]:
        """Gives `forward`, `backward`, and `counters` where there are any."""

    def series(self, since: int) -> Mapping[str, Any]:
        """Gives `period_ns`, `first`, `forward`, `backward`."""

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
            answer: Mapping[str, Any] = _error("a request is one line of at most 1 MiB")
        else:
            answer = _answer(device, line, known)
            if answer["ok"] is True and "abilities" in answer:
                known = read_abilities(json.loads(json.dumps(answer["abilities"])), "abilities")
        sink.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        sink.flush()


def _answer(device: Device, line: bytes, known: Abilities | None) -> Mapping[str, Any]:
    try:
        return {"ok": True, **_done(device, requests.read(line), known)}
    except (ValueError, RecursionError) as error:
        return _error(str(error) or "no JSON")
    except RefusedError as error:
        return _error(str(error))
    except OSError as error:
        return _error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))


def _done(device: Device, request: DriverRequest, known: Abilities | None) -> Mapping[str, Any]:
    if isinstance(request, DescribeRequest):
        if request.protocol != PROTOCOL:
            raise RefusedError(f"this driver speaks protocol {PROTOCOL}")
        return {"protocol": PROTOCOL, **device.describe(request.address, request.model, request.options)}
    if known is None:
        raise RefusedError("the first request is describe")
    match request:
        case SetRequest():
            if found := beyond(request.settings, known):
                raise RefusedError(f"{found[0]}: {found[1]}")
            device.set(request.direction, rounded(request.settings, known))
            return {}
        case ReadRequest():
            return device.read()
        case SeriesRequest():
            return device.series(request.since)
        case ResetRequest():
            device.reset()
            return {}


def _error(why: str) -> dict[str, Any]:
    return {"ok": False, "error": one_line(why, MOST_SHOWN) or "refused"}
