"""Quantities as other emulators' tools read them: text in, this project's exact quantities out.

The same letters mean different things there: `mbps` is bit/s in a description and bytes a second for tc. Each reader
follows one tool's manual: tc(8) with tc/tc_util.c and lib/utils.c of iproute2, ipfw(8) with sbin/ipfw/dummynet.c of
FreeBSD, cnistnet of NIST Net 2.0. What a tool would read as something else than it says (ipfw takes `1.5Mbit/s` for
1 bit/s), or reads differently in different versions, is a UnitError that says what to write.
"""

from __future__ import annotations

import re
from fractions import Fraction as Exact

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, PPB, Duration, Fraction, Rate, Size, UnitError

_NUMBER = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(.*)", re.DOTALL)
_STRTOD = re.compile(
    r"\+?(?:0[xX](?P<hexadecimal>[0-9a-fA-F]{1,20})|(?P<decimal>[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})"
    r"(?:[eE](?P<power>[-+]?[0-9]{1,3}))?)(?P<rest>.*)",
    re.DOTALL,
)
"""A number as strtod(3) reads it, which tc does for all quantities with a unit."""
_STRTOUL = re.compile(
    r"\+?(?:0[xX](?P<hexadecimal>[0-9a-fA-F]{1,8})|(?P<octal>0[0-7]{0,11})|(?P<decimal>[1-9][0-9]{0,9}))"
)
_WHOLE = re.compile(r"([0-9]{1,15})(.*)", re.DOTALL)

_PREFIX = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_TC_RATE = {
    f"{prefix}{unit}": size * bits
    for prefix, size in {**_PREFIX, **_BINARY}.items()
    for unit, bits in (("bit", 1), ("bps", BITS_PER_BYTE))
}
_TC_TIME = {
    **dict.fromkeys(("s", "sec", "secs"), NS_PER_SECOND),
    **dict.fromkeys(("ms", "msec", "msecs"), NS_PER_MS),
    **dict.fromkeys(("us", "usec", "usecs"), 10**3),
    **dict.fromkeys(("ns", "nsec", "nsecs"), 1),
}
_TC_SIZE = {
    **dict.fromkeys(("", "b"), Exact(1)),
    **{
        unit: Exact(size) for power, size in (("k", 2**10), ("m", 2**20), ("g", 2**30)) for unit in (power, f"{power}b")
    },
    **{f"{power}bit": Exact(size, BITS_PER_BYTE) for power, size in (("k", 2**10), ("m", 2**20), ("g", 2**30))},
}


_DUMMYNET_BITS = ("", "bit/s", "bits/s", "bit", "bits", "bps", "Bit/s", "Bits/s", "Bit", "Bits")
_DUMMYNET_BYTES = ("B", "B/s", "Byte/s", "Bytes/s", "Byte", "Bytes", "byte/s", "bytes/s", "byte", "bytes")


def _split(text: str, instead: str) -> tuple[Exact, str]:
    """The number and the rest; UnitError for what is no plain decimal number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnitError(instead)
    return Exact(match[1]), match[2]


def _tc_split(text: str, instead: str) -> tuple[Exact, str]:
    """`1.5ms`, `1e3kbit`, `0x10`: the number and the unit."""
    match = _STRTOD.fullmatch(text)
    if match is None:
        raise UnitError(instead)
    if match["hexadecimal"]:
        return Exact(int(match["hexadecimal"], 16)), match["rest"]
    return Exact(match["decimal"]) * Exact(10) ** int(match["power"] or 0), match["rest"]


def tc_whole(text: str) -> int:
    """The number that tc reads with strtoul(3): decimal, `0x10` in hexadecimal, `010` in octal."""
    match = _STRTOUL.fullmatch(text)
    if match is None:
        raise UnitError('is no whole number: write one, like "1000"')
    if match["hexadecimal"]:
        return int(match["hexadecimal"], 16)
    return int(match["octal"], 8) if match["octal"] else int(match["decimal"])


def _whole(value: Exact, what: str, instead: str) -> int:
    if value.denominator != 1:
        raise UnitError(f"is not a whole number of {what}: {instead}")
    return int(value)


def _rate(bps: Exact) -> Rate:
    whole = _whole(bps, "bits per second", f'write "{round(bps)}bit"')
    if not Rate.LOWEST <= whole <= Rate.HIGHEST:
        raise UnitError(f"is {whole} bit/s: links have 8kbit/s to 1Tbit/s")
    return Rate(whole)


def _duration(ns: Exact) -> Duration:
    whole = _whole(ns, "nanoseconds", 'write one like "50ms"')
    if whole > Duration.LONGEST:
        raise UnitError(f"is longer than {Duration(Duration.LONGEST)}, the longest delay of a link")
    return Duration(whole)


def tc_rate(text: str) -> Rate:
    """`10mbit` is 10 Mbit/s, `10mbps` 10 megabytes a second, `10mibit` 10 × 2^20 bit/s; a bare number is bit/s."""
    return _rate(tc_bps(text))


def tc_bps(text: str) -> Exact:
    """A rate in bit/s, which may be lower or higher than that of a link."""
    value, unit = _tc_split(text, 'write a rate as "10mbit"')
    if unit == "%":
        raise UnitError('is a part of the card\'s speed, which is not known here: write the rate, like "10mbit"')
    factor = 1 if not unit else _TC_RATE.get(unit.lower())
    if factor is None:
        raise UnitError('is no rate of tc: write "10mbit" (bits), or "10mbps" (bytes)')
    return value * factor


def tc_time(text: str) -> Duration:
    """`100ms`, `20us`, `1s`; of bare numbers only 0, since tc read them as µs until it read some of them as ns."""
    value, unit = _tc_split(text, 'write a time as "100ms"')
    if not unit and value:
        raise UnitError(
            f'has no unit: tc reads microseconds, newer ones nanoseconds for netem: write "{text}us" or "{text}ns"'
        )
    factor = 1 if not unit else _TC_TIME.get(unit.lower())
    if factor is None:
        raise UnitError('is no time of tc: write it as "100ms"')
    return _duration(value * factor)


def tc_size(text: str) -> Size:
    """`1540`, `32kb` and `32k` are 32 × 1024 bytes, `8kbit` is 1024 bytes. tc cuts off fractions of a byte."""
    value, unit = _tc_split(text, 'write a size as "32kb"')
    factor = _TC_SIZE.get(unit.lower())
    if factor is None:
        raise UnitError('is no size of tc: write it as "32kb" (of 1024 bytes each) or in bytes')
    return Size(int(value * factor))


def tc_percent(text: str) -> Fraction:
    """`1%`, and `1` is the same."""
    value, unit = _tc_split(text, 'write a percentage as "1%"')
    if unit not in ("", "%"):
        raise UnitError('is no percentage: write "1%"')
    return _fraction(value / 100)


def tc_probability(text: str) -> Fraction:
    """`0.02`: a number from 0 to 1, as RED has it."""
    value, unit = _tc_split(text, 'write a probability as "0.02"')
    if unit:
        raise UnitError('is no number from 0 to 1, which tc reads there: write "0.02" for 2 %')
    return _fraction(value)


def _fraction(value: Exact) -> Fraction:
    if value > 1:
        raise UnitError("is above 100 %")
    return Fraction(_whole(value * PPB, "parts per billion", "write it with fewer digits"))


def dummynet_rate(text: str) -> Rate | None:
    """`10Mbit/s`, `300Kbit/s`, `1MByte/s`, bare bit/s; K is 1000, as ipfw has it. 0 is without limit: None."""
    match = _WHOLE.fullmatch(text)
    if match is None or match[2].startswith((".", "x", "X", "e", "E")):
        raise UnitError('ipfw reads only a whole number, and stops at anything else: write it as "1500Kbit/s"')
    prefix = match[2][:1].lower() if match[2][:1] in tuple("KkMmGg") else ""
    unit = match[2][len(prefix) :]
    if unit in _DUMMYNET_BITS:
        bits = 1
    elif unit in _DUMMYNET_BYTES:
        bits = BITS_PER_BYTE
    else:
        raise UnitError('is no bandwidth of ipfw: write it as "10Mbit/s" or "1MByte/s"')
    bps = int(match[1]) * _PREFIX[prefix] * bits
    return _rate(Exact(bps)) if bps else None


def dummynet_delay(text: str) -> Duration:
    """Whole milliseconds, with or without `ms`."""
    match = _WHOLE.fullmatch(text)
    if match is None or match[2] not in ("", "ms"):
        raise UnitError('ipfw reads whole milliseconds, and no unit behind them: write "50"')
    return _duration(Exact(int(match[1]) * NS_PER_MS))


def dummynet_queue(text: str) -> int | Size:
    """`50` are slots (packets); `30KBytes` and `30K` are 30 × 1024 bytes, `3000B` and `3000bytes` bytes."""
    match = _WHOLE.fullmatch(text)
    unit = match[2].lower() if match else "?"
    known = ("", "slots", "k", "kb", "kbyte", "kbytes", "b", "byte", "bytes")
    if match is None or unit not in known or match[2] == "b":  # ipfw takes 3000b for slots
        raise UnitError('is no queue size of ipfw: write slots as "50", or bytes as "30KBytes"')
    if unit in ("", "slots"):
        return int(match[1])
    return Size(int(match[1]) * (2**10 if unit.startswith("k") else 1))


def dummynet_time(text: str) -> Duration:
    """A time of CoDel or PIE: milliseconds, or with the unit `s`, `ms`, `us`."""
    value, unit = _split(text, 'write a time as "5ms"')
    factor = _TC_TIME["ms"] if not unit else _TC_TIME.get(unit)
    if factor is None or unit not in ("", "s", "ms", "us"):
        raise UnitError('is no time of ipfw: write it as "5ms"')
    return _duration(value * factor)


def dummynet_bytes(text: str) -> Size:
    """A burst size: bytes, with k, m, g for powers of 1024 (expand_number(3))."""
    match = _WHOLE.fullmatch(text)
    unit = match[2].lower().removesuffix("b") if match else "?"
    if match is None or unit not in ("", "k", "m", "g"):
        raise UnitError('is no size: write bytes, or "30k" (of 1024 bytes each)')
    return Size(int(match[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[unit])


def probability(text: str) -> Fraction:
    """`0.01` is 1 %. ipfw takes everything above 1 for 1, so `1%` would lose every packet."""
    value, unit = _split(text, 'write a probability as "0.01"')
    if unit or value > 1:
        raise UnitError('is no probability from 0 to 1, and ipfw would lose every packet: write 1 % as "0.01"')
    return _fraction(value)


def nistnet_bandwidth(text: str) -> Rate | None:
    """Bytes a second; 0 is without limit: None."""
    value, unit = _split(text, 'write bytes a second, like "1250000"')
    if unit:
        raise UnitError(f'NIST Net reads bytes a second, without a unit: write "{text[: -len(unit)]}" if it is in them')
    return _rate(value * BITS_PER_BYTE) if value else None


def nistnet_delay(text: str) -> Duration:
    """Milliseconds, fractions too."""
    value, unit = _split(text, 'write milliseconds, like "50" or "0.5"')
    if unit:
        raise UnitError(f'NIST Net reads milliseconds, without a unit: write "{text[: -len(unit)]}" if it is in them')
    return _duration(value * NS_PER_MS)


def nistnet_percent(text: str) -> Fraction:
    """`1` and `1%` are 1 %, as tc reads them."""
    return tc_percent(text)


def tbf_limit(rate: Rate, latency: Duration, burst: Size) -> Size:
    """Bytes that tc gives a token bucket for `latency`: what the rate carries in it, and the bucket."""
    return Size(rate.bps * latency.ns // (BITS_PER_BYTE * NS_PER_SECOND) + burst.bytes)
