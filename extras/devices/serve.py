"""What the drivers of this project have in common: lines in, lines out, errors in one line.

In: a `Device`. Out: the protocol of docs/hardware.md on standard input and output, until the input ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from ewan.labs.base.reading import one_line
from ewan.labs.hardware.abilities import Abilities, beyond, read_abilities, rounded
from ewan.labs.hardware.driver import HEADINGS, PROTOCOL
from ewan.labs.hardware.settings import DeviceSettings, read_settings

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
        request = json.loads(line)
        if not isinstance(request, dict):
            return _error("a request is a JSON object")
        return {"ok": True, **_done(device, request, known)}
    except (ValueError, RecursionError) as error:
        return _error(str(error) or "no JSON")
    except RefusedError as error:
        return _error(str(error))
    except OSError as error:
        return _error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))


def _done(device: Device, request: Mapping[str, Any], known: Abilities | None) -> Mapping[str, Any]:
    what = request.get("request")
    keys = request.keys() - {"request"}
    wanted = {
        "describe": {"protocol", "address", "model", "options"},
        "set": {"direction", "settings"},
        "read": set(),
        "series": {"since"},
        "reset": set(),
    }.get(str(what))
    if wanted is None:
        raise RefusedError("write request describe, set, read, series or reset")
    if keys != wanted:
        raise RefusedError(f"{what} has the keys {', '.join(sorted(wanted)) or 'request alone'}")
    if what == "describe":
        return _described(device, request)
    if known is None:
        raise RefusedError("the first request is describe")
    match what:
        case "set":
            if request["direction"] not in HEADINGS:
                raise RefusedError("direction is forward or backward")
            settings = read_settings(request["settings"], "settings")
            if found := beyond(settings, known):
                raise RefusedError(f"{found[0]}: {found[1]}")
            device.set(request["direction"], rounded(settings, known))
            return {}
        case "read":
            return device.read()
        case "series":
            since = request["since"]
            if type(since) is not int or since < 0:
                raise RefusedError("since is a whole number from 0 on")
            return device.series(since)
        case _:
            device.reset()
            return {}


def _described(device: Device, request: Mapping[str, Any]) -> Mapping[str, Any]:
    if request["protocol"] != PROTOCOL:
        raise RefusedError(f"this driver speaks protocol {PROTOCOL}")
    address, model, options = request["address"], request["model"], request["options"]
    texts = isinstance(options, dict) and all(isinstance(each, str) for each in options.values())
    if not isinstance(address, str) or not (model is None or isinstance(model, str)) or not texts:
        raise RefusedError("address is a text, model a text or null, options texts by name")
    return {"protocol": PROTOCOL, **device.describe(address, model, options)}


def _error(why: str) -> dict[str, Any]:
    return {"ok": False, "error": one_line(why, MOST_SHOWN) or "refused"}
