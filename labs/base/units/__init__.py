"""Quantities as people write them: text in, exact integers out (bit/s, ns, bytes, parts per billion).

A number without a unit is refused, and so is one that the integer cannot hold exactly; the error says what to
write instead. This is the only Python file that knows conversion factors; `ewan.labs.base.units.shown` writes measured
values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction as Exact
from typing import ClassVar, Literal

# At most 40 digits either side of the point: longer ones are converted ever more slowly, and mean nothing.
_NUMBER = re.compile(r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))(?![0-9])\s?(.*)", re.DOTALL)

NS_PER_SECOND = 10**9
NS_PER_DAY = 86_400 * NS_PER_SECOND
NS_PER_MS = 10**6
NS_PER_US = 10**3
PPB = 10**9
PPM = 10**6
KILO, MEGA, GIGA = 10**3, 10**6, 10**9
BITS_PER_BYTE = 8


class UnitError(ValueError):
    """The fault of a quantity and its remedy, in one line without the text itself."""


def _split(text: object, what: str, example: str) -> tuple[Exact, str, str]:
    """The number, the number's own text, and the unit."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(f'write {what} as "{example}"')
    match = _NUMBER.fullmatch(str(text).strip())
    if match is None or re.match(r"[eE][+-]?[0-9]", match[2]):
        raise UnitError(f'write {what} as "{example}"')
    return Exact(match[1]), match[1], match[2]


def _whole(value: Exact, scale: dict[str, int], unit: str, smallest: str) -> int:
    """`value` × scale[unit]; a rest is an error that names the nearest exact form."""
    amount = value * scale[unit]
    if amount.denominator != 1:
        nearest = _text(round(amount), scale, unit)
        raise UnitError(f'is not a whole number of {smallest}: write "{nearest}"')
    return int(amount)


def _text(amount: int, scale: dict[str, int], unit: str) -> str:
    """`amount` in `unit` as a decimal number, exactly."""
    size = scale[unit]
    whole, rest = divmod(abs(amount), size)
    digits = f"{rest:0{len(str(size)) - 1}d}".rstrip("0") if rest else ""
    return f"{'-' if amount < 0 else ''}{whole}{'.' + digits if digits else ''}{unit}"


def _shortest(amount: int, scale: dict[str, int]) -> str:
    """`amount` in the largest unit that it fills, exactly."""
    best = min(scale, key=lambda unit: scale[unit])
    for unit, size in sorted(scale.items(), key=lambda item: item[1]):
        if amount >= size:
            best = unit
    return _text(amount, scale, best)


_RATE = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_RATE_ALIASES = {
    alias: unit
    for prefix, unit in {**{unit.removesuffix("bit/s"): unit for unit in _RATE}, "K": "kbit/s"}.items()
    for alias in (f"{prefix}bit/s", f"{prefix}b/s", f"{prefix}bps", *([prefix] if prefix else []))
}


@dataclass(frozen=True, slots=True, order=True)
class Rate:
    """Bits per second."""

    bps: int
    LOWEST: ClassVar[int] = 8_000
    HIGHEST: ClassVar[int] = 10**12

    @classmethod
    def parse(cls, text: object) -> Rate:
        """`1Gbit/s`, `100Mbit/s`, `8kbit/s`, `1G`; from 8 kbit/s to 1 Tbit/s."""
        value, number, unit = _split(text, "a rate", "1Gbit/s")
        if unit not in _RATE_ALIASES:
            guess = {"k": "kbit/s", "m": "Mbit/s", "g": "Gbit/s", "t": "Tbit/s"}.get(unit[:1].lower(), "Mbit/s")
            in_bits = not unit and value >= _RATE["Mbit/s"]
            raise UnitError(f'write a rate as "{cls(int(value)) if in_bits else number.lstrip("+-") + guess}"')
        bps = _whole(value, _RATE, _RATE_ALIASES[unit], "bits per second")
        if not cls.LOWEST <= bps <= cls.HIGHEST:
            raise UnitError('a rate is between 8kbit/s and 1Tbit/s: write one within, like "1Gbit/s"')
        return cls(bps)

    def __str__(self) -> str:
        return _shortest(self.bps, _RATE)


_TIME = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
# What is whole in nanoseconds at sight: tables have a million of these, and fractions take ten times as long.
_PLAIN_TIME = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))? ?(ns|us|ms|s)")
_DECIMALS = {"ns": 0, "us": 3, "ms": 6, "s": 9}
_LONGER_S = {"h": 3600, "min": 60}
"""Seconds of units that people write, and that durations do not have."""
_TIME_ALIASES = {**{unit: unit for unit in _TIME}, "µs": "us", "μs": "us"}


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """Nanoseconds."""

    ns: int
    LONGEST: ClassVar[int] = 10 * NS_PER_SECOND

    @classmethod
    def parse(cls, text: object, longest_ns: int = LONGEST) -> Duration:
        """`100ms`, `1.5s`, `20us`, `7ns`; not negative, at most `longest_ns`."""
        plain = _PLAIN_TIME.fullmatch(text) if isinstance(text, str) else None
        if plain is not None and len(plain[2] or "") <= (places := _DECIMALS[plain[3]]):
            whole = int(plain[1] + (plain[2] or "").ljust(places, "0"))
            if whole <= longest_ns:
                return cls(whole)
        value, number, unit = _split(text, "a duration", "100ms")
        if unit not in _TIME_ALIASES:
            longer = next((size for name, size in _LONGER_S.items() if unit.lower().startswith(name)), None)
            guess = f"{number.lstrip('+-')}ms" if longer is None else f"{float(abs(value) * longer):g}s"
            raise UnitError(f'write a duration as "{guess}"')
        if value < 0:
            raise UnitError(f'a duration is not negative: write "{number.lstrip("+-")}{unit}"')
        ns = _whole(value, _TIME, _TIME_ALIASES[unit], "nanoseconds")
        if ns > longest_ns:
            raise UnitError(f'is too long: write at most "{cls(longest_ns)}"')
        return cls(ns)

    def __str__(self) -> str:
        return "0ms" if self.ns == 0 else _shortest(self.ns, _TIME)


_SIZE = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """Bytes."""

    bytes: int

    @classmethod
    def parse(cls, text: object) -> Size:
        """`500kB`, `1MiB`, `1500B`."""
        value, number, unit = _split(text, "a size", "500kB")
        if unit not in _SIZE:
            raise UnitError(f'write a size as "{number.lstrip("+-")}kB"')
        if value < 0:
            raise UnitError(f'a size is not negative: write "{number.lstrip("+-")}{unit}"')
        amount = value * _SIZE[unit]
        if amount.denominator != 1:
            raise UnitError(f'is not a whole number of bytes: write "{round(amount)}B"')
        return cls(int(amount))

    def __str__(self) -> str:
        return _shortest(self.bytes, {unit: size for unit, size in _SIZE.items() if "i" not in unit})


_BITS = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}


def parse_volume(text: object) -> Size:
    """A size that may also be written in bits, as transfers often are: `30Gbit`, `500MB`; whole bytes."""
    value, number, unit = _split(text, "a volume", "500MB")
    if unit not in _BITS:
        if unit not in _SIZE:
            raise UnitError(f'write a volume as "{number.lstrip("+-")}MB" or "{number.lstrip("+-")}Gbit"')
        return Size.parse(text)
    if value < 0:
        raise UnitError(f'a volume is not negative: write "{number.lstrip("+-")}{unit}"')
    amount = value * _BITS[unit] / BITS_PER_BYTE
    if amount.denominator != 1:
        raise UnitError(f'is not a whole number of bytes: write "{round(amount)}B"')
    return Size(int(amount))


_PART = {"ppb": 1, "ppm": 10**3, "%": 10**7}


@dataclass(frozen=True, slots=True, order=True)
class Fraction:
    """A probability in parts per billion."""

    ppb: int

    @classmethod
    def parse(cls, text: object) -> Fraction:
        """`0.1%`, `100ppm`, `5ppb`; from 0 to 100 %."""
        value, number, unit = _split(text, "a fraction", "0.1%")
        if unit not in _PART:
            said = f"{number.lstrip('+-')}%"
            if not unit and 0 < value < 1:
                raise UnitError(f'write a fraction as "{_text(round(value * PPB), _PART, "%")}" or "{said}"')
            raise UnitError(f'write a fraction as "{said}"')
        if not 0 <= value * _PART[unit] <= PPB:
            raise UnitError('a fraction is between 0% and 100%: write one within, like "0.1%"')
        return cls(_whole(value, _PART, unit, "parts per billion"))

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.ppb / PPB

    def __str__(self) -> str:
        return "0%" if self.ppb == 0 else _text(self.ppb, _PART, "%")


_THOUSANDTH = {"": 1000}


@dataclass(frozen=True, slots=True)
class Buffer:
    """The size of a buffer: `amount` packets, bytes, nanoseconds at the link's rate, or thousandths of a BDP."""

    unit: Literal["packets", "bytes", "ns", "millibdp"]
    amount: int

    @classmethod
    def parse(cls, text: object) -> Buffer:
        """`1BDP` (of the longest RTT), `255pkt`, `500kB`, `100ms`."""
        example = 'write a buffer as "1BDP", "255pkt", "500kB" or "100ms"'
        try:
            value, number, unit = _split(text, "a buffer", "1BDP")
        except UnitError:
            raise UnitError(example) from None
        if value < 0:
            raise UnitError(f'a buffer is not negative: write "{number.lstrip("+-")}{unit}"')
        if unit in ("BDP", "bdp"):
            if (value * 1000).denominator != 1:
                raise UnitError(f'is finer than 0.001BDP: write "{_text(round(value * 1000), _THOUSANDTH, "")}BDP"')
            return cls("millibdp", int(value * 1000))
        if unit in ("pkt", "packets"):
            if value.denominator != 1:
                raise UnitError(f'is not a whole number of packets: write "{round(value)}pkt"')
            return cls("packets", int(value))
        if unit in _SIZE:
            return cls("bytes", Size.parse(text).bytes)
        if unit in _TIME_ALIASES:
            return cls("ns", Duration.parse(text).ns)
        raise UnitError(example)

    def __str__(self) -> str:
        match self.unit:
            case "packets":
                return f"{self.amount}pkt"
            case "bytes":
                return str(Size(self.amount))
            case "ns":
                return str(Duration(self.amount))
            case "millibdp":
                return _text(self.amount, _THOUSANDTH, "") + "BDP"


def bytes_in(rate_bps: int, time_ns: int) -> int:
    """Whole bytes that a rate carries in a time."""
    return rate_bps * time_ns // (BITS_PER_BYTE * NS_PER_SECOND)


def mean_rate_bps(size_bytes: int, time_ns: int) -> int:
    """The rate that moves `size_bytes` in `time_ns`, rounded down to whole bits per second."""
    return size_bytes * BITS_PER_BYTE * NS_PER_SECOND // time_ns


def bdp_bytes(rate_bps: int, rtt_ns: int, millibdp: int) -> int:
    """Whole bytes of `millibdp` thousandths of the bandwidth-delay product."""
    return rate_bps * rtt_ns * millibdp // (BITS_PER_BYTE * NS_PER_SECOND * 1000)


def time_for(size_bytes: int, rate_bps: int) -> int:
    """Nanoseconds that `size_bytes` take at a rate, rounded up."""
    return -(-size_bytes * BITS_PER_BYTE * NS_PER_SECOND // rate_bps)


_PLAIN = re.compile(r"([+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?)(%?)")
_LONGEST_PUBLISHED_NS = 1000 * NS_PER_DAY


def parse_published(text: str) -> tuple[float, str]:
    """A value that others published, with the unit that metrics have: bit/s, ns, B or share; a plain number has none.

    Percentages may be negative or above 100 %, since they are differences too.
    """
    if (plain := _PLAIN.fullmatch(text)) is not None:
        return (float(plain[1]) / 100, "share") if plain[2] else (float(plain[1]), "")
    for parse in (_published_rate, _published_time, _published_size, _published_share):
        try:
            return parse(text)
        except UnitError:
            continue
    raise UnitError('write a value like "8353.66Mbit/s", "12.5s", "0.9993" or "2.5%"')


def _published_rate(text: str) -> tuple[float, str]:
    return float(Rate.parse(text).bps), "bit/s"


def _published_time(text: str) -> tuple[float, str]:
    return float(Duration.parse(text, _LONGEST_PUBLISHED_NS).ns), "ns"


def _published_size(text: str) -> tuple[float, str]:
    return float(parse_volume(text).bytes), "B"


def _published_share(text: str) -> tuple[float, str]:
    return Fraction.parse(text).ppb / PPB, "share"


def parse_millihertz(text: object) -> int:
    """A control loop's gain, `0.125Hz`, in thousandths of a hertz."""
    value, number, unit = _split(text, "a gain", "0.125Hz")
    if unit != "Hz":
        raise UnitError(f'write a gain as "{number.lstrip("+-")}Hz"')
    if not 0 <= value <= 1000:
        raise UnitError('a gain is between 0Hz and 1000Hz: write one within, like "0.125Hz"')
    return _whole(value, {"Hz": 1000}, "Hz", "thousandths of a hertz")


def scale(kind: Literal["rate", "size", "time"]) -> dict[str, int]:
    """Units in which measured amounts are shown, with how many bit/s, bytes or ns each is; the largest first."""
    units = {"rate": _RATE, "size": {unit: _SIZE[unit] for unit in ("B", "kB", "MB", "GB")}, "time": _TIME}[kind]
    return dict(sorted(units.items(), key=lambda unit: -unit[1]))
