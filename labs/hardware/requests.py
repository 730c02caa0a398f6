"""Requests to a driver, a line each: docs/how-to/labs/hardware.md has the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from ewan.labs.base import codec
from ewan.labs.base.codec import Meta, Struct
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link.direction import Heading


class DescribeRequest(Struct, tag_field="request", tag="describe"):
    """Opens the device at an address; the first request. `model`: None, the default one of the driver."""

    protocol: int
    address: str
    model: str | None
    options: Mapping[str, str]


class SetRequest(Struct, tag_field="request", tag="set"):
    """Sets one direction, as a whole."""

    direction: Heading
    settings: DeviceSettings


class ReadRequest(Struct, tag_field="request", tag="read"):
    """A request for the present settings and counters of the device."""


class SeriesRequest(Struct, tag_field="request", tag="series"):
    """A request for the bytes of the periods from number `since` on, as far as the device keeps them."""

    since: Annotated[int, Meta(ge=0)]


class ResetRequest(Struct, tag_field="request", tag="reset"):
    """Brings the device to its defaults, and its periods and counters to nothing."""


DriverRequest = DescribeRequest | SetRequest | ReadRequest | SeriesRequest | ResetRequest


def read(line: bytes) -> DriverRequest:
    """The request in a line; ValueError, one line, for any other line."""
    found: DriverRequest = codec.decode(cast(Any, DriverRequest), line, "")
    return found
