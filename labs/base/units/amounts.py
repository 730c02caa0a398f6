"""Amounts of any kind as people state them, when they answer a question or draw a parameter; not held to whole units.

In: text like `42.1ms`, `1.2 MB`, `95%`, `83 packets`, `0,5`. Out: exact numbers in SI base units (seconds, bit/s,
bytes; shares and plain numbers as such), and their text again. What a description holds is read by
`ewan.labs.base.units`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as Exact
from typing import Literal

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND, PPB, UnitError, scale

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
    r"[~≈]?\s*([+\-−–]?)((?:[0-9]|[.,][0-9])[0-9.,]*(?:[ _'’\u00a0\u202f][0-9]{3}(?![0-9])[0-9.,]*)*)"
    r"((?:[eE][+-]?[0-9]{1,2})?)\s*([^0-9.,\s].*)?"
)
_SEPARATORS = re.compile(r"[ _'’\u00a0\u202f]")
MOST_DIGITS = 80
"""Of a number: longer ones are converted ever more slowly, and mean nothing."""

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

QUOTES = "“”„‟‘’‚«»`"
"""What editors make of quotes, and the marks of Markdown for code: no part of the value between them."""
_AROUND = f"{QUOTES}* \u00a0\u202f"
_ABOUT = re.compile(
    r"(?:[~≈=]|about|approx(?:imately|\.)?|ca\.?|circa|etwa|ungefähr|rund|environ|env\.)\s*", re.IGNORECASE
)
_EXPLAINED = re.compile(r"\([^()]*\)$")
"""What is said of an amount behind it, as in `42 ms (p95)`."""
_POWER = re.compile(
    r"(?<=[0-9])\s*[×·⋅*x]\s*10(?:\s*(?:\^|\*\*)\s*(?P<plain>[+\-−–]?[0-9]{1,2})(?![0-9])|(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]{1,2}))"
)
_LOWERED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹−–", "+-0123456789--")
_STOP = re.compile(r"([^\W\d_]|[%\s]|[.,][0-9]+)\.$")
"""The end of a sentence, and not the point of `300.`, which says that the zeros were measured."""
_GROUPED = re.compile(r"(?<![0-9.,])([1-9][0-9]{0,2})\.([0-9]{3})(?![0-9.,])")

_PREFIXES = {
    **{"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30},
    **{"kilo": 10**3, "mega": 10**6, "giga": 10**9, "tera": 10**12, "kibi": 2**10, "mebi": 2**20, "gibi": 2**30},
}
_DATA = re.compile(
    r"(?P<prefix>(?:kilo|mega|giga|tera|kibi|mebi|gibi|[kmgt]|[kmg]i)?)(?P<what>[bB]|(?i:bits?|bytes?|octets?))"
    r"(?P<per>(?:\s?(?:/|per|pro|par)\s?(?:s|sec|second|sekunde|seconde)|(?<=[bB])ps)?)",
    re.IGNORECASE,
)
"""Of sizes and rates. Letters may be large or small but for b (bits) and B (bytes): nobody means millibits."""
_SPELLED: tuple[tuple[str, Kind, Exact], ...] = (
    ("ns nsec nanosecond nanosekunde nanoseconde", "time", Exact(1, NS_PER_SECOND)),
    ("us µs μs usec microsecond mikrosekunde microseconde", "time", Exact(1000, NS_PER_SECOND)),
    ("ms msec millisecond millisekunde milliseconde", "time", Exact(1, 1000)),
    ("s sec sek second sekunde seconde", "time", Exact(1)),
    ("min minute", "time", Exact(60)),
    ("h hour stunde heure", "time", Exact(3600)),
    ("packet pkt pkg paket pakete paquet segment segmente seg", "packets", Exact(1)),
    ("% percent prozent pourcent point punkt punkte prozentpunkt prozentpunkte pp", "share", Exact(1, 100)),
    ("ppm", "share", Exact(1000, PPB)),
    ("bdp", "bdp", Exact(1)),
    ("x × times time mal fois fold", "number", Exact(1)),
)
_WORDS: Mapping[str, tuple[Kind, Exact]] = {
    word: (kind, size) for words, kind, size in _SPELLED for word in words.split()
}
"""Units that are words, in small letters and in the singular."""
_RATIOS: tuple[tuple[Kind, Kind], ...] = (("number", "share"), ("number", "bdp"))
"""What a plain number may be written as: `70%`, and `2.7BDP` where multiples of the BDP are asked for."""
_COUNTED = re.compile(r"[^\W\d_]{3,}(?:[ /][^\W\d_]+)*")
"""What is counted, behind a number that needs no unit: `8 adjacencies`, `8.2 segments/s`."""
_PLURAL = re.compile(r"(?<=[a-zµ]{2})(?:s|n)$")


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


@dataclass(frozen=True, slots=True)
class Typed:
    """An amount as it was typed: `number` times the unit, whose size in the SI base unit is `size`.

    `finest`: the power of ten of the last digit that was written; `coarsest`: that of the last digit that is not 0,
    where there is no decimal point, as nobody knows whether the zeros of 300 were measured.
    """

    number: Exact
    size: Exact
    kind: Kind
    finest: int
    coarsest: int

    @property
    def amount(self) -> Amount:
        """In the SI base unit."""
        return Amount(self.number * self.size, self.kind)


def read(text: object) -> Amount:
    """An amount of any kind, by its unit; UnitError for other text."""
    number, unit = _split(text, 'write a quantity with its unit, as "42.1ms", or a number', False)
    found = _unit(unit)
    if found is None:
        raise UnitError(f'unknown unit "{unit}": write {_listed()}')
    return Amount(Exact(number) * found[1], found[0])


def read_as(text: object, kind: Kind, comma: bool = False) -> Amount:
    """An amount of one kind; UnitError for others, which says how this kind is written. `comma`: see `typed`."""
    return typed(text, kind, comma).amount


def typed(text: object, kind: Kind, comma: bool = False) -> Typed:
    """An amount of one kind with the digits in which it was written; UnitError for others.

    Decimals may stand behind a point or a comma, thousands may be apart. `comma`: the reader's language writes decimals
    behind a comma, so that `4,795` is less than 5; otherwise it may be either, and is refused. A number of packets
    needs no unit, a plain number may have a word of what is counted, and a ratio may be in percent. What people write
    around an amount (`about`, quotes, a full stop, an explanation in brackets) says nothing of it.
    """
    instead = f"write {EXAMPLES[kind]}"
    number, unit = _split(_bare(text) if isinstance(text, str) else text, instead, comma)
    found = _unit(unit)
    if kind == "packets" and not unit:
        found = "packets", Exact(1)
    if kind == "number" and found is None and _COUNTED.fullmatch(unit):
        found = "number", Exact(1)
    if found is None or (found[0] != kind and (kind, found[0]) not in _RATIOS):
        raise UnitError(instead)
    mantissa, _, power = number.lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    finest = int(power or 0) - len(decimals)
    zeros = len(whole) - len(whole.rstrip("0")) if "." not in mantissa and whole.strip("+-0") else 0
    return Typed(Exact(number), found[1], kind, finest, finest + zeros)


def either(text: str) -> tuple[str, str] | None:
    """The two amounts that one may be whose point stands before three digits, where people write decimals behind a
    comma: `1.045 ms` may be `1,045 ms` and `1045 ms`. None: it has no such point."""
    found = _GROUPED.search(text)
    if found is None:
        return None
    return _GROUPED.sub(r"\1,\2", text), _GROUPED.sub(r"\1\2", text)


def _bare(text: str) -> str:
    """An amount without what is written around it, and a power of ten behind its number as in `3e6`."""
    inner = _EXPLAINED.sub("", text.strip(_AROUND)).rstrip()
    inner = inner[found.end() :] if (found := _ABOUT.match(inner)) else inner
    inner = _POWER.sub(lambda power: f"e{(power['plain'] or power['raised']).translate(_LOWERED)}", inner)
    return _STOP.sub(r"\1", inner)


def _split(text: object, instead: str, comma: bool) -> tuple[str, str]:
    """The number as Python reads it, and the unit."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(instead)
    found = _NUMBER.fullmatch(str(text).strip())
    if found is None or len(found[2]) > MOST_DIGITS:
        raise UnitError(instead)
    sign = "-" if found[1] in ("-", "−", "–") and found[1] else ""
    return f"{sign}{_plain(found[2], comma, instead)}{found[3]}", (found[4] or "").strip()


def _plain(digits: str, comma: bool, instead: str) -> str:
    """Digits with a decimal point, and nothing between thousands; UnitError for what is no number, or may be two."""
    joined = _SEPARATORS.sub("", digits)
    if joined != digits and not re.fullmatch(r"[0-9]{1,3}(?:[^0-9.,][0-9]{3})+(?:[.,][0-9]*)?", digits):
        raise UnitError(instead)
    for point, thousands in ((".", ","), (",", ".")):
        if re.fullmatch(rf"[0-9]{{1,3}}(?:\{thousands}[0-9]{{3}})+\{point}[0-9]*", joined):
            return joined.replace(thousands, "").replace(point, ".")
    if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3}){2,}|[0-9]{1,3}(?:\.[0-9]{3}){2,}", joined):
        return joined.replace(",", "").replace(".", "")
    if not re.fullmatch(r"[0-9]*[.,]?[0-9]*", joined):
        raise UnitError(instead)
    if not comma and re.fullmatch(r"[1-9][0-9]{0,2},[0-9]{3}", joined):
        pair = f'"{joined.replace(",", ".")}" or "{joined.replace(",", "")}"'
        raise UnitError(f"may be either of two numbers: write {pair}")
    return joined.replace(",", ".")


def _unit(unit: str) -> tuple[Kind, Exact] | None:
    """Kind and size of a unit as people write it; None for an unknown one."""
    if not unit:
        return "number", Exact(1)
    word = re.sub(r"^(?:percentage|per(?= cent))\s*", lambda found: "" if "age" in found[0] else "per", unit.lower())
    for each in (word, word.replace(" ", ""), _PLURAL.sub("", word)):
        if each in _WORDS:
            return _WORDS[each]
    found = _DATA.fullmatch(unit)
    if found is None:
        return None
    size = Exact(_PREFIXES[found["prefix"].lower()])
    in_bits = found["what"] == "b" or found["what"].lower().startswith("bit")
    if found["per"]:
        return "rate", size if in_bits else size * BITS_PER_BYTE
    return "size", size / BITS_PER_BYTE if in_bits else size


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
