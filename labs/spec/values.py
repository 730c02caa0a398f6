"""The values of a description that are not of a link's direction, as types that pydantic reads.

Comes in: a scalar, list or small mapping, as YAML gave it. Goes out: a typed value, or a ValueError that says what to
write instead.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from ewan.labs.base.units import NS_PER_SECOND, Duration, Size
from ewan.labs.base.values import WHOLE, Count, TextFile, read_file, written_as


def _mtu(value: object) -> int:
    text = "" if isinstance(value, bool) else str(value)
    if WHOLE.fullmatch(text) and 576 <= int(text) <= 65535:
        return int(text)
    raise ValueError('write the largest IP packet in bytes without a unit, from 576 to 65535, like "1500"')


def _named_file(value: object, info: ValidationInfo) -> TextFile:
    if not isinstance(value, str) or not value:
        raise ValueError('write the file\'s path relative to the description, like "frr.conf"')
    return TextFile(value, read_file(value, info))


def _rtt(value: object) -> Duration | tuple[Duration, ...]:
    if isinstance(value, (list, tuple)):
        if not value:
            raise ValueError('an empty list: write one RTT a pair, like "[10ms, 40ms]"')
        return tuple(_one_rtt(item) for item in value)
    return _one_rtt(value)


def _one_rtt(value: object) -> Duration:
    return Duration.parse(value, 2 * Duration.LONGEST)


def _dither(value: object) -> Duration | Literal["auto"]:
    """`auto`, or a duration, of which 0 needs no unit."""
    if value == "auto":
        return "auto"
    if not isinstance(value, bool) and str(value) == "0":
        return Duration(0)
    return Duration.parse(value)


DEFAULT_KERNEL = "6.12"
"""The name of the kernel that every clone builds."""
KERNEL_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,30}", re.ASCII)
_LEAST_WINDOW, _MOST_WINDOW, _MOST_SOCKET_BUFFER = 4096, 2**29, 2**31 - 2**20
"""Bytes. The kernel holds a buffer in an int; a window takes a buffer of up to two and a half times its size."""
_MOST_KEEPALIVE_S = 65_535
"""WireGuard has 16 bits for it."""


def _socket_buffer(value: object) -> Size:
    size = Size.parse(value)
    if _LEAST_WINDOW <= size.bytes <= _MOST_SOCKET_BUFFER:
        return size
    raise ValueError('write 4096B to 2047MiB, like "64kB"')


def _kernel(value: object) -> str:
    text = str(value)
    if not isinstance(value, bool) and KERNEL_NAME.fullmatch(text):
        return text
    raise ValueError('write the name of a kernel that you added (ewan kernel add), like "bbr3"')


def _keepalive(value: object) -> Duration:
    try:
        found = Duration.parse(value, _MOST_KEEPALIVE_S * NS_PER_SECOND)
    except ValueError:
        found = Duration(0)
    if found.ns and found.ns % NS_PER_SECOND == 0:
        return found
    raise ValueError(f'write whole seconds from 1s to {_MOST_KEEPALIVE_S}s, like "25s"')


def _window(value: object) -> Size | Literal["auto"]:
    if value == "auto":
        return "auto"
    size = Size.parse(value)
    if _LEAST_WINDOW <= size.bytes <= _MOST_WINDOW:
        return size
    raise ValueError('write "auto", or 4096B to 512MiB, like "64KiB"')


def _ip(value: object) -> str:
    if not isinstance(value, bool) and str(value) in ("4", "6", "dual"):
        return str(value)
    raise ValueError('write "4", "6" or "dual"')


KernelText = Annotated[str, PlainValidator(_kernel), written_as("kernel", "bbr3")]
NamedFile = Annotated[TextFile, PlainValidator(_named_file), written_as("file", "frr.conf")]
SocketBufferText = Annotated[Size, PlainValidator(_socket_buffer), written_as("size", "64kB")]
KeepaliveText = Annotated[Duration, PlainValidator(_keepalive), written_as("duration", "25s")]
WindowText = Annotated[Size | Literal["auto"], PlainValidator(_window), written_as("`auto` or a size", "64KiB", "auto")]
DitherText = Annotated[
    Duration | Literal["auto"], PlainValidator(_dither), written_as("`auto`, `0` or a duration", "0", "10us")
]
RttText = Annotated[Duration | tuple[Duration, ...], PlainValidator(_rtt), written_as("RTT", "100ms", "[10ms, 40ms]")]
Mtu = Annotated[int, PlainValidator(_mtu), WithJsonSchema({"type": "integer", "minimum": 576, "maximum": 65535})]
Seed = Annotated[int, Count(0, 2**63 - 1)]
VlanId = Annotated[int, Count(1, 4094)]
Ip = Annotated[Literal["4", "6", "dual"], PlainValidator(_ip), WithJsonSchema({"enum": ["4", "6", "dual"]})]
