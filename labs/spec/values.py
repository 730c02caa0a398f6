"""The values of a description as types that pydantic reads: quantities, names, counts, files of delays and losses.

Comes in: a scalar, list or small mapping, as YAML gave it. Goes out: a typed value, or a ValueError that says what to
write instead. Files are read by the function that `ewan.labs.spec` puts into the context.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator, ValidationInfo, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from ewan.labs import traces
from ewan.labs.base.reading import MOST_DIGITS
from ewan.labs.base.units import PPB, Buffer, Duration, Fraction, Rate, Size, parse_millihertz

NAME = re.compile(r"[a-z][a-z0-9-]*")
WHOLE = re.compile(rf"[0-9]{{1,{MOST_DIGITS}}}")
LONGEST_NAME = 32
LONGEST_TABLE = 2**20
# What a table of delays may show of itself in an error: another file, read as root, is not to be seen that way.
_QUANTITY = re.compile(r"[+-]?[0-9.]{1,20} ?[A-Za-zµ/]{0,6}")


def _name(value: object) -> str:
    """A name of small letters, digits and hyphens: it becomes part of the names of nodes, files and namespaces."""
    if isinstance(value, str) and NAME.fullmatch(value) and not value.endswith("-"):
        if len(value) <= LONGEST_NAME:
            return value
        raise ValueError(f"has {len(value)} characters: write a name of at most {LONGEST_NAME}")
    raise ValueError('write a name of small letters, digits and hyphens that begins with a letter, like "dumbbell"')


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number, from YAML or as text from the command line: `Annotated[int, Count(1, 10)]`."""

    least: int
    most: int

    def parse(self, value: object) -> int:
        """The number; ValueError for what is no whole number from `least` to `most`."""
        text = "" if isinstance(value, bool) else str(value)
        digits = text.removeprefix("-") if self.least < 0 else text
        if WHOLE.fullmatch(digits) and self.least <= int(text) <= self.most:
            return int(text)
        example = max(self.least, min(2, self.most))
        raise ValueError(f'write a whole number from {self.least} to {self.most}, like "{example}"')

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


def _mtu(value: object) -> int:
    text = "" if isinstance(value, bool) else str(value)
    if WHOLE.fullmatch(text) and 576 <= int(text) <= 65535:
        return int(text)
    raise ValueError('write the largest IP packet in bytes without a unit, from 576 to 65535, like "1500"')


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that a description names, and what it holds."""

    name: str
    text: str


def _trace_file(value: object, info: ValidationInfo) -> TextFile:
    if not isinstance(value, str) or not value:
        raise ValueError('write the file\'s path relative to the description, like "lte.csv"')
    text = _read(value, info)
    _as_imported(value, text, info)
    return TextFile(value, text)


def _named_file(value: object, info: ValidationInfo) -> TextFile:
    if not isinstance(value, str) or not value:
        raise ValueError('write the file\'s path relative to the description, like "frr.conf"')
    return TextFile(value, _read(value, info))


def _as_imported(name: str, text: str, info: ValidationInfo) -> None:
    """ValueError where the file is not the one that its NAME.source.yaml tells of (`ewan trace import`)."""
    try:
        beside = _read(name + traces.SOURCE_SUFFIX, info)
    except ValueError:
        return
    told = re.search(r"^sha256: *[\"']?([0-9a-f]{64})\b", beside, re.MULTILINE)
    if told and told[1] != hashlib.sha256(text.encode()).hexdigest():
        is_another = f"{name}: is not the file that {name}{traces.SOURCE_SUFFIX} tells of (SHA-256)"
        raise ValueError(f"{is_another}: import it again if it was cut off; if you changed it, leave out its sha256")


@dataclass(frozen=True, slots=True)
class DelayTable:
    """Measured delays, one drawn for each packet."""

    file: str
    delays_ns: tuple[int, ...]
    mean_ns: int


def _delay(value: object, info: ValidationInfo) -> Duration | DelayTable:
    if not isinstance(value, dict):
        return Duration.parse(value)
    name = value.get("table")
    if set(value) != {"table"} or not isinstance(name, str):
        raise ValueError('write a delay as "50ms" or "{table: delays.txt}"')
    delays = []
    lines = _read(name, info).splitlines()
    if len(lines) > 2 * LONGEST_TABLE:  # comments and empty ones too
        raise ValueError(f"{name} has {len(lines)} lines: write at most {LONGEST_TABLE} delays, one a line")
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        if text:
            try:
                delays.append(Duration.parse(text).ns)
            except ValueError as error:
                wrong = f'"{text}": {error}' if _QUANTITY.fullmatch(text) else 'write a delay a line, like "50ms"'
                raise ValueError(f"{name}:{number}: {wrong}") from None
    if not 0 < len(delays) <= LONGEST_TABLE:
        raise ValueError(f"{name} holds {len(delays)} delays: write 1 to {LONGEST_TABLE}, one a line")
    return DelayTable(name, tuple(delays), sum(delays) // len(delays))


@dataclass(frozen=True, slots=True)
class BitErrors:
    """The probability that a bit is wrong."""

    per_bit: Fraction


def _bit_errors(value: object) -> BitErrors:
    return BitErrors(Fraction.parse(value))


def _pattern(value: object, info: ValidationInfo) -> str:
    """Losses as a text of "0" (through) and "1" (lost), as it is written or, without white space, from a file."""
    if isinstance(value, dict) and set(value) == {"file"}:
        name = str(value["file"])
        pattern = "".join(_read(name, info).split())
    else:
        name, pattern = "the pattern", str(value)
    if not re.fullmatch(r"[01]+", pattern) or len(pattern) > LONGEST_TABLE:
        raise ValueError(f'{name} is not 1 to {LONGEST_TABLE} of "0" (through) and "1" (lost): write like "0001"')
    return pattern


def _read(name: str, info: ValidationInfo) -> str:
    read = (info.context or {}).get("read")
    if read is None:
        raise ValueError(f"{name}: only a lab's description names files: write the value itself")
    try:
        return str(read(name))
    except OSError as error:
        raise ValueError(f"{name}: {error.strerror}: write a file's path relative to the description") from None


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


def _correlation(value: object) -> Fraction:
    """Of each packet with the one before it."""
    fraction = Fraction.parse(value)
    if fraction.ppb < PPB:
        return fraction
    raise ValueError('all packets would be alike: write less than 100%, like "90%"')


def _blackhole(value: object) -> Size | Literal["none"]:
    """The longest IP packet that passes, or `none`."""
    if value == "none":
        return "none"
    size = Size.parse(value)
    if 68 <= size.bytes <= 65535:
        return size
    raise ValueError('write the longest IP packet that passes, from 68B to 65535B, or "none"')


_DEPTHS = range(64, 2**30 + 1)


def _depth(value: object) -> Size:
    """Of a token bucket."""
    size = Size.parse(value)
    if size.bytes in _DEPTHS:
        return size
    raise ValueError('write 64B to 1GiB, like "32kB"')


_LEAST_WINDOW, _MOST_WINDOW, _MOST_SOCKET_BUFFER = 4096, 2**29, 2**31 - 2**20
"""Bytes. The kernel holds a buffer in an int; a window takes a buffer of up to two and a half times its size."""


def _socket_buffer(value: object) -> Size:
    size = Size.parse(value)
    if _LEAST_WINDOW <= size.bytes <= _MOST_SOCKET_BUFFER:
        return size
    raise ValueError('write 4096B to 2047MiB, like "64kB"')


def _window(value: object) -> Size | Literal["auto"]:
    if value == "auto":
        return "auto"
    size = Size.parse(value)
    if _LEAST_WINDOW <= size.bytes <= _MOST_WINDOW:
        return size
    raise ValueError('write "auto", or 4096B to 512MiB, like "64KiB"')


def _burst(value: object) -> Size | Literal["none"]:
    return "none" if value == "none" else _depth(value)


_SHORTEST_ROUND, _LONGEST_ROUND = Duration.parse("1us"), Duration.parse("1s")


def _round(value: object) -> Duration:
    """Of slots and of HARQ."""
    duration = Duration.parse(value, _LONGEST_ROUND.ns)
    if duration.ns >= _SHORTEST_ROUND.ns:
        return duration
    raise ValueError(f'write {_SHORTEST_ROUND} to {_LONGEST_ROUND}, like "8ms"')


def _slot(value: object) -> Duration | Literal["none"]:
    return "none" if value == "none" else _round(value)


def _errors(value: object) -> Fraction:
    fraction = Fraction.parse(value)
    if fraction.ppb <= 900_000_000:
        return fraction
    raise ValueError('write at most "90%"')


def _peak(value: object) -> Rate | Literal["none"]:
    return "none" if value == "none" else Rate.parse(value)


def _ip(value: object) -> str:
    if not isinstance(value, bool) and str(value) in ("4", "6", "dual"):
        return str(value)
    raise ValueError('write "4", "6" or "dual"')


_DSCP = {
    **dict.fromkeys(("be", "df", "cs0"), 0),
    **{f"cs{number}": 8 * number for number in range(1, 8)},
    **{f"af{klass}{drop}": 8 * klass + 2 * drop for klass in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
    "va": 44,
    "le": 1,
}
"""RFC 2474, 2597, 3246, 5865, 8622."""


def _dscp(value: object) -> int:
    text = "" if isinstance(value, bool) else str(value).lower()
    if text in _DSCP:
        return _DSCP[text]
    if WHOLE.fullmatch(text) and int(text) <= 63:
        return int(text)
    raise ValueError('write a DSCP by its name, like "ef", "af41" or "cs1", or as a number from 0 to 63')


def _text(title: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": title, "examples": list(examples)})


Name = Annotated[str, PlainValidator(_name), _text("name", "dumbbell")]
RateText = Annotated[Rate, PlainValidator(Rate.parse), _text("rate", "1Gbit/s")]
DurationText = Annotated[Duration, PlainValidator(Duration.parse), _text("duration", "100ms")]
SizeText = Annotated[Size, PlainValidator(Size.parse), _text("size", "500kB")]
FractionText = Annotated[Fraction, PlainValidator(Fraction.parse), _text("fraction", "0.1%")]
CorrelationText = Annotated[Fraction, PlainValidator(_correlation), _text("fraction", "90%")]
BufferText = Annotated[Buffer, PlainValidator(Buffer.parse), _text("buffer", "1BDP")]
GainText = Annotated[int, PlainValidator(parse_millihertz), _text("gain", "0.125Hz")]
DelayText = Annotated[Duration | DelayTable, PlainValidator(_delay), _text("delay", "50ms", "{table: delays.txt}")]
TraceFile = Annotated[TextFile, PlainValidator(_trace_file), _text("file", "lte.csv")]
NamedFile = Annotated[TextFile, PlainValidator(_named_file), _text("file", "frr.conf")]
TraceTime = Annotated[
    Duration, PlainValidator(lambda value: Duration.parse(value, traces.LONGEST_NS)), _text("duration", "10s")
]
BitErrorsText = Annotated[BitErrors, PlainValidator(_bit_errors), _text("fraction", "100ppb")]
PatternText = Annotated[str, PlainValidator(_pattern), _text("pattern", "0001", "{file: losses.txt}")]
Dscp = Annotated[int, PlainValidator(_dscp), _text("DSCP", "ef", "af41", "46")]
BlackholeText = Annotated[
    Size | Literal["none"], PlainValidator(_blackhole), _text("`none` or a size", "1400B", "none")
]
DepthText = Annotated[Size, PlainValidator(_depth), _text("size", "32kB")]
SocketBufferText = Annotated[Size, PlainValidator(_socket_buffer), _text("size", "64kB")]
WindowText = Annotated[Size | Literal["auto"], PlainValidator(_window), _text("`auto` or a size", "64KiB", "auto")]
BurstText = Annotated[Size | Literal["none"], PlainValidator(_burst), _text("`none` or a size", "32kB", "none")]
RadioTimeText = Annotated[
    Duration, PlainValidator(lambda value: Duration.parse(value, _LONGEST_ROUND.ns)), _text("duration", "150us")
]
RoundText = Annotated[Duration, PlainValidator(_round), _text("duration", "8ms")]
SlotText = Annotated[Duration | Literal["none"], PlainValidator(_slot), _text("`none` or a duration", "1ms", "none")]
ErrorsText = Annotated[Fraction, PlainValidator(_errors), _text("fraction", "10%")]
PeakText = Annotated[Rate | Literal["none"], PlainValidator(_peak), _text("`none` or a rate", "1Gbit/s", "none")]
DitherText = Annotated[
    Duration | Literal["auto"], PlainValidator(_dither), _text("`auto`, `0` or a duration", "0", "10us")
]
RttText = Annotated[Duration | tuple[Duration, ...], PlainValidator(_rtt), _text("RTT", "100ms", "[10ms, 40ms]")]
Mtu = Annotated[int, PlainValidator(_mtu), WithJsonSchema({"type": "integer", "minimum": 576, "maximum": 65535})]
Seed = Annotated[int, Count(0, 2**63 - 1)]
VlanId = Annotated[int, Count(1, 4094)]
Ip = Annotated[Literal["4", "6", "dual"], PlainValidator(_ip), WithJsonSchema({"enum": ["4", "6", "dual"]})]
