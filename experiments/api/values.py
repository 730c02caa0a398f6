"""Values of Python as descriptions write them: times, ports, settings.

In: arguments of the functions of `import ewan`. Out: text and data as YAML has them; ValueError of one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite

from ewan.labs.base.codec import JsonValue
from ewan.labs.base.units import NS_PER_SECOND

Time = str | int
"""A time: text with a unit, as `"100ms"`, or nanoseconds, as `seconds(0.1)`."""

_PORT = re.compile(r"(?:tcp:|udp:)?([0-9]+)")


def seconds(value: float) -> int:
    """The nanoseconds of `value` seconds, the unit of all times of results: `client.ended < ewan.seconds(4.2)`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ValueError(f"seconds({value!r}): write a number of seconds, as 0.1")
    return round(value * NS_PER_SECOND)


def time_text(value: Time) -> str:
    """A time in the words of a scenario; ValueError for a number that is no whole number of nanoseconds."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f'{value!r} is no time: write "100ms" or ewan.seconds(0.1)')
    return f"{value}ns"


def port(value: int | str) -> int:
    """The port of `ready=4433`, `"4433"`, `"tcp:4433"` or `"udp:4433"`; ValueError for another text."""
    match = _PORT.fullmatch(str(value))
    if match is None:
        raise ValueError(f'ready={value!r}: write the port that the program listens at, as 4433 or "udp:4433"')
    return int(match[1])


def as_written(value: object) -> JsonValue:
    """A setting as YAML would give it: numbers, texts, lists and groups of keys; a number that is no whole number
    becomes text."""
    if isinstance(value, Mapping):
        return {str(key): as_written(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_written(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
