"""Amounts of any kind as people state them, when they answer a question or draw a parameter; not held to whole units.

In: text like `42.1ms`, `1.2 MB`, `95%`, `83 packets`, `0.5`. Out: exact numbers in SI base units (seconds, bit/s,
bytes; shares and plain numbers as such), and their text again. What a description holds is read by `labs.units`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as Exact
from typing import Literal

from labs.units import BITS_PER_BYTE, NS_PER_SECOND, PPB, UnitError, scale

Kind = Literal["time", "rate", "size", "packets", "share", "bdp", "number"]

EXAMPLES: Mapping[Kind, str] = {
    "time": 'a time as "42.1ms"',
    "rate": 'a rate as "9.5Mbit/s"',
    "size": 'a size as "1.2MB"',
    "packets": 'a number of packets as "83packets"',
    "share": 'a share as "95%"',
    "bdp": 'a buffer as "0.5BDP"',
    "number": 'a number without a unit, as "2.5"',
}
"""How each kind is written, as it follows `write`."""

_NUMBER = re.compile(
    r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?)\s*([^0-9.,\s].*)?"
)
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+\s*[^0-9,]*")

_SHOWN: Mapping[Kind, Mapping[str, Exact]] = {
    "time": {unit: Exact(ns, NS_PER_SECOND) for unit, ns in scale("time").items()},
    "rate": {unit: Exact(bps) for unit, bps in scale("rate").items()},
    "size": {unit: Exact(size) for unit, size in scale("size").items()},
    "packets": {"pkt": Exact(1)},
    "share": {"%": Exact(1, 100)},
    "bdp": {"BDP": Exact(1)},
    "number": {"": Exact(1)},
}
"""Units in which amounts are written, the largest first."""

_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_UNITS: Mapping[str, tuple[Kind, Exact]] = {
    **{unit: (kind, size) for kind, units in _SHOWN.items() for unit, size in units.items()},
    **{unit: ("time", Exact(1000, NS_PER_SECOND)) for unit in ("µs", "μs")},
    **{
        f"{prefix}{unit}": ("rate", Exact(size))
        for prefix, size in _PREFIXES.items()
        for unit in ("bit/s", "b/s", "bps", "Bit/s", "bits/s")
    },
    **{
        f"{prefix}{unit}": ("rate", Exact(size * BITS_PER_BYTE))
        for prefix, size in {**_PREFIXES, **_BINARY}.items()
        for unit in ("B/s", "byte/s", "bytes/s")
    },
    **{
        f"{prefix}{unit}": ("size", Exact(size))
        for prefix, size in {**_PREFIXES, **_BINARY}.items()
        for unit in ("B", "byte", "bytes")
    },
    **{
        f"{prefix}{unit}": ("size", Exact(size, BITS_PER_BYTE))
        for prefix, size in _PREFIXES.items()
        for unit in ("bit", "bits", "Bit")
    },
    **{unit: ("packets", Exact(1)) for unit in ("packet", "packets", "segment", "segments", "Pakete", "Segmente")},
    "ppm": ("share", Exact(1000, PPB)),
    "bdp": ("bdp", Exact(1)),
}


@dataclass(frozen=True, slots=True)
class Amount:
    """`value` in the SI base unit of its kind."""

    value: Exact
    kind: Kind

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        """In the largest unit that it fills, exactly where its decimals end: `42ms`."""
        units = _SHOWN[self.kind]
        unit = next((unit for unit, size in units.items() if abs(self.value) >= size), list(units)[-1])
        if not self.value and self.kind == "time":
            unit = "ms"
        return f"{_decimal(self.value / units[unit])}{unit}"


def read(text: object) -> Amount:
    """An amount of any kind, by its unit; UnitError for other text."""
    number, unit = _split(text, 'write a quantity with its unit, as "42.1ms", or a number')
    if unit not in _UNITS:
        raise UnitError(f'unknown unit "{unit}": write {_listed()}')
    kind, size = _UNITS[unit]
    return Amount(number * size, kind)


def read_as(text: object, kind: Kind) -> Amount:
    """An amount of one kind; UnitError for others, which says how this kind is written."""
    instead = f"write {EXAMPLES[kind]}"
    number, unit = _split(text, instead)
    if unit not in _UNITS or _UNITS[unit][0] != kind:
        raise UnitError(instead)
    return Amount(number * _UNITS[unit][1], kind)


def _split(text: object, instead: str) -> tuple[Exact, str]:
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(instead)
    words = str(text).strip()
    if _COMMA.fullmatch(words):
        raise UnitError(f'write decimals behind a point: "{words.replace(",", ".")[:40]}"')
    found = _NUMBER.fullmatch(words)
    if found is None:
        raise UnitError(instead)
    return Exact(found[1]), (found[2] or "").strip()


def _decimal(value: Exact) -> str:
    """As a decimal number; rounded to 12 digits where its decimals do not end."""
    for places in range(13):
        scaled = value * 10**places
        if scaled.denominator == 1:
            sign, digits = "-" * (value < 0), f"{abs(int(scaled)):0{places + 1}d}"
            return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
    return f"{float(value):.12g}"


def _listed() -> str:
    return ", ".join(example.partition(" as ")[2] for example in EXAMPLES.values())
