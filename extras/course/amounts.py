"""Amounts of any kind as people state them, when they answer a question or draw a parameter; not held to whole units.

In: text like `42.1ms`, `1.2 MB`, `95%`, `83 packets`, `0,5`. Out: exact numbers in SI base units (seconds, bit/s,
bytes; shares and plain numbers as such), and their text again. What a description holds is read by
`ewan.labs.base.units`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction as Exact

from ewan.extras.course import amount_words
from ewan.extras.course.amount_words import MINUS, NOTHING, QUOTES, RepeatedWords, bare
from ewan.extras.course.named_units import Kind
from ewan.extras.course.named_units import unit as named
from ewan.labs.base.units import NS_PER_SECOND, UnitError, scale

__all__ = ["EXAMPLES", "QUOTES", "Amount", "Kind", "TypedAmount", "read", "read_as", "readings", "typed"]

EXAMPLES: Mapping[Kind, str] = {
    "time": 'a time as "42.1ms"',
    "rate": 'a rate as "9.5Mbit/s"',
    "size": 'a size as "1.2MB"',
    "packets": 'a number of packets as "83packets"',
    "share": 'a share as "95%"',
    "bdp": 'a buffer as "2BDP"',
    "number": 'a number without a unit, as "2.5"',
}
"""Examples of each kind, as they follow `write`."""

_NUMBER = re.compile(
    r"[~≈]?\s*([+-]?)\s*((?:[0-9]|[.,][0-9])[0-9.,]*(?:[ _'’\u00a0\u202f][0-9]{3}(?![0-9])[0-9.,]*)*)"
    r"((?:[eE][+-]?[0-9]{1,2})?)\s*([^0-9.,\s].*)?"
)
_SEPARATORS = re.compile(r"[ _'’\u00a0\u202f]")
MOST_DIGITS = 80
"""The most digits of a number: longer ones are converted ever more slowly, and are meaningless."""

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

_GROUPED = re.compile(r"(?<![0-9.,])([1-9][0-9]{0,2})\.([0-9]{3})(?![0-9.,])")

_CAPITALS = (
    *(
        (re.compile(rf"(?<![^\W\d_]){prefix.upper()}B(?:PS|/S)(?![^\W\d_])"), f"{prefix}B/s", f"{prefix}bit/s")
        for prefix in ("", "k", "M", "G", "T")
    ),
    (re.compile(r"(?<![^\W\d_])KB(?:YTES?)?(?![\w/])"), "kB", "KiB"),
)
"""Units in capitals whose meaning depends on small letters: `MBPS` may be MB/s or Mbit/s, `KB` kB or KiB."""
_PLAIN_SHARE = 1
"""A share is at most so much where it is a plain number: 95 without a unit may be anything."""
_PART = r"([0-9][0-9.,]*)\s*([^\W\d_]+(?:/s)?)"
_SUM = re.compile(rf"([+-]?)\s*{_PART}(?:(?:\s*(?:[,+&]|\b(?:and|und|et)\b))?\s*{_PART})+", re.IGNORECASE)
"""An amount in several units, as `1 min 30 s`."""


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
class TypedAmount:
    """An amount as it was typed: `number` times the unit, whose size in the SI base unit is `size`.

    `finest`: the power of ten of the last digit that was written; `coarsest`: that of the last digit that is not 0,
    where there is no decimal point, since it is not known whether the zeros of 300 were measured.
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
    found = named(unit)
    if found is None:
        raise UnitError(f'unknown unit "{unit}": write {_listed()}')
    return Amount(Exact(number) * found[1], found[0])


def read_as(text: object, kind: Kind, comma: bool = False) -> Amount:
    """An amount of one kind; UnitError for others, which says how this kind is written. `comma`: see `typed`."""
    return typed(text, kind, comma).amount


def typed(text: object, kind: Kind, comma: bool = False, asked: RepeatedWords = NOTHING) -> TypedAmount:
    """An amount of one kind with the digits in which it was written; UnitError for others.

    Decimals may stand behind a point or a comma, thousands may be apart. `comma`: the reader's language writes decimals
    behind a comma, so that `4,795` is less than 5; otherwise it may be either, and is refused. A number of packets
    needs no unit, a ratio may be in percent, and a share a number up to 1. What people write around an amount
    (`about`, quotes, a full stop, in brackets how it was found) is ignored, and so are the quantity's name and what
    is counted, as `asked` has them, behind it: any other word may make another amount of it, and is refused.
    """
    instead = f"write {EXAMPLES[kind]}"
    inner = bare(text) if isinstance(text, str) else text
    number, unit = _split(inner, instead, comma)
    found = _behind(unit, kind, asked)
    if found is None and isinstance(inner, str):
        return _sum(inner, kind, comma, instead)
    size = None if found is None else _size(found, Exact(number), kind, asked)
    if size is None:
        raise UnitError(instead)
    return _typed(number, size, kind)


def _typed(number: str, size: Exact, kind: Kind) -> TypedAmount:
    mantissa, _, power = number.lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    finest = int(power or 0) - len(decimals)
    zeros = len(whole) - len(whole.rstrip("0")) if "." not in mantissa and whole.strip("+-0") else 0
    return TypedAmount(Exact(number), size, kind, finest, finest + zeros)


def _behind(unit: str, kind: Kind, asked: RepeatedWords) -> tuple[Kind, Exact] | None:
    """Kind and size of all that is behind a number; None where it holds an unknown word."""
    factor, rest = amount_words.scaled(unit)
    if kind in ("number", "packets") and asked.counts(rest):
        return "number", Exact(factor)
    for told, behind in amount_words.cuts(rest):
        if behind and not asked.names(behind, kind):
            return None
        if (found := named(told)) is not None and (found[0] != "number" or not told or kind == "number"):
            return found[0], factor * found[1]
    return None


def _size(found: tuple[Kind, Exact], number: Exact, kind: Kind, asked: RepeatedWords) -> Exact | None:
    """The size of a unit where one of this kind is asked for; None: it is of another kind. A plain number may be
    written as `70%`, and as `2.7BDP` where multiples of the BDP are asked for."""
    ratio = kind == "number" and (found[0] == "share" or (found[0] == "bdp" and asked.bdps))
    if found[0] == kind or ratio or (found[0] == "number" and kind == "packets"):
        return found[1]
    plain = found == ("number", Exact(1)) and kind == "share"
    return found[1] if plain and 0 <= number <= _PLAIN_SHARE else None


def _sum(text: str, kind: Kind, comma: bool, instead: str) -> TypedAmount:
    """An amount in several units, the largest first, each but the last whole and less than one of the unit before."""
    found = _SUM.fullmatch(text.strip())
    parts = re.findall(_PART, text) if found is not None else []
    units = [_part_of(unit, kind) for _, unit in parts]
    sizes = [unit for unit in units if unit is not None]
    if found is None or len(sizes) < len(units) or not all(digits.isdigit() for digits, _ in parts[:-1]):
        raise UnitError(instead)
    numbers = [*(digits for digits, _ in parts[:-1]), _plain(parts[-1][0], comma, instead, parts[-1][1])]
    for before, size, number in zip(sizes, sizes[1:], numbers[1:], strict=False):
        if Exact(number) * size >= before:
            raise UnitError(instead)
    last = _typed(numbers[-1], sizes[-1], kind)
    total = sum((Exact(number) * size for number, size in zip(numbers, sizes, strict=True)), Exact(0)) / sizes[-1]
    return TypedAmount(-total if found[1] == "-" else total, sizes[-1], kind, last.finest, last.finest)


def _part_of(unit: str, kind: Kind) -> Exact | None:
    """The size of one of several units; the m of 1m30s is a minute."""
    found = named("min" if kind == "time" and unit == "m" else unit)
    return found[1] if found is not None and found[0] == kind else None


def readings(text: str, comma: bool) -> Iterator[tuple[str, str]]:
    """Yield the two amounts that a text may mean, the usual reading first: where people write decimals behind a comma,
    `1.045 ms` may be `1,045 ms` and `1045 ms`; `9.5 MBPS` may be `9.5 MB/s` and `9.5 Mbit/s`."""
    if comma and _GROUPED.search(text):
        yield _GROUPED.sub(r"\1,\2", text), _GROUPED.sub(r"\1\2", text)
    for unit, first, second in _CAPITALS:
        if unit.search(text):
            yield unit.sub(first, text), unit.sub(second, text)


def _split(text: object, instead: str, comma: bool) -> tuple[str, str]:
    """The number as Python reads it, and the unit."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(instead)
    found = _NUMBER.fullmatch(str(text).translate(MINUS).strip())
    if found is None or len(found[2]) > MOST_DIGITS:
        raise UnitError(instead)
    sign = found[1].replace("+", "")
    behind = found[0][found.end(2) :]
    return f"{sign}{_plain(found[2], comma, instead, behind)}{found[3]}", (found[4] or "").strip()


def _plain(digits: str, comma: bool, instead: str, behind: str) -> str:
    """Digits with a decimal point, and nothing between thousands; UnitError for a text that is no number, or may be
    two, which it names with the text behind them."""
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
        pair = f'"{joined.replace(",", ".")}{behind}" or "{joined.replace(",", "")}{behind}"'
        raise UnitError(f"may be either of two numbers: write {pair}")
    return joined.replace(",", ".")


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
