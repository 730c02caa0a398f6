from __future__ import annotations

from fractions import Fraction as Exact
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewan.labs.base.units import (
    Buffer,
    Duration,
    Fraction,
    Rate,
    Size,
    UnitError,
    bdp_bytes,
    bytes_in,
    parse_millihertz,
    parse_volume,
    time_for,
)


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("1Gbit/s", 10**9),
        ("1G", 10**9),
        ("10Gbps", 10**10),
        ("1 Gb/s", 10**9),
        ("100Mbit/s", 10**8),
        ("1.5M", 1_500_000),
        ("8kbit/s", 8_000),
        ("8K", 8_000),
        ("100Gbit/s", 10**11),
        ("0.5T", 5 * 10**11),
        ("1Tbps", 10**12),
        ("12345bit/s", 12345),
    ],
)
def test_a_rate(text: str, bps: int) -> None:
    assert Rate.parse(text) == Rate(bps)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("100ms", 10**8), ("1.5s", 1_500_000_000), ("20us", 20_000), ("20µs", 20_000), ("0ms", 0), ("7ns", 7)],
)
def test_a_duration(text: str, ns: int) -> None:
    assert Duration.parse(text) == Duration(ns)


@pytest.mark.parametrize(("text", "size"), [("500kB", 500_000), ("1MiB", 2**20), ("1500B", 1500), ("1.5KiB", 1536)])
def test_a_size(text: str, size: int) -> None:
    assert Size.parse(text) == Size(size)


@pytest.mark.parametrize(("text", "ppb"), [("0.1%", 10**6), ("100%", 10**9), ("100ppm", 10**5), ("5ppb", 5), ("0%", 0)])
def test_a_fraction(text: str, ppb: int) -> None:
    assert Fraction.parse(text) == Fraction(ppb)


@pytest.mark.parametrize(
    ("text", "buffer"),
    [
        ("1BDP", Buffer("millibdp", 1000)),
        ("0.25BDP", Buffer("millibdp", 250)),
        ("255pkt", Buffer("packets", 255)),
        ("500kB", Buffer("bytes", 500_000)),
        ("100ms", Buffer("ns", 10**8)),
    ],
)
def test_a_buffer(text: str, buffer: Buffer) -> None:
    assert Buffer.parse(text) == buffer
    assert Buffer.parse(str(buffer)) == buffer


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Rate, "1 Gbps/s", 'write a rate as "1Gbit/s"'),
        (Rate, "1GB/s", 'write a rate as "1Gbit/s"'),
        (Rate, 1000, 'write a rate as "1000Mbit/s"'),
        (Rate, 20e6, 'write a rate as "20Mbit/s"'),
        (Rate, "2500000", 'write a rate as "2.5Mbit/s"'),
        (Rate, "fast", 'write a rate as "1Gbit/s"'),
        (Duration, "3h", 'write a duration as "10800s"'),
        (Duration, "1.5min", 'write a duration as "90s"'),
        (Rate, None, 'write a rate as "1Gbit/s"'),
        (Rate, True, 'write a rate as "1Gbit/s"'),
        (Rate, "7999bit/s", 'a rate is between 8kbit/s and 1Tbit/s: write one within, like "1Gbit/s"'),
        (Rate, "1001G", 'a rate is between 8kbit/s and 1Tbit/s: write one within, like "1Gbit/s"'),
        (Rate, "-1G", 'a rate is between 8kbit/s and 1Tbit/s: write one within, like "1Gbit/s"'),
        (Rate, "10.0001kbit/s", 'is not a whole number of bits per second: write "10kbit/s"'),
        (Duration, "100", 'write a duration as "100ms"'),
        (Duration, "-5ms", 'a duration is not negative: write "5ms"'),
        (Duration, "11s", 'is too long: write at most "10s"'),
        (Duration, "0.3ns", 'is not a whole number of nanoseconds: write "0ns"'),
        (Duration, "1.0000016ms", 'is not a whole number of nanoseconds: write "1.000002ms"'),
        (Duration, "1e3ms", 'write a duration as "100ms"'),
        (Size, "100", 'write a size as "100kB"'),
        (Size, "0.5B", 'is not a whole number of bytes: write "0B"'),
        (Fraction, "0.001", 'write a fraction as "0.1%" or "0.001%"'),
        (Fraction, "5", 'write a fraction as "5%"'),
        (Fraction, "120%", 'a fraction is between 0% and 100%: write one within, like "0.1%"'),
        (Fraction, "-1%", 'a fraction is between 0% and 100%: write one within, like "0.1%"'),
        (Fraction, "33.33333333333%", 'is not a whole number of parts per billion: write "33.3333333%"'),
        (Buffer, "255", 'write a buffer as "1BDP", "255pkt", "500kB" or "100ms"'),
        (Buffer, "1.5pkt", 'is not a whole number of packets: write "2pkt"'),
        (Buffer, "0.0001BDP", 'is finer than 0.001BDP: write "0BDP"'),
    ],
)
def test_refused(kind: Any, text: object, message: str) -> None:
    with pytest.raises(UnitError) as refusal:
        kind.parse(text)
    assert str(refusal.value) == message


def test_a_gain_of_a_control_loop() -> None:
    assert parse_millihertz("0.125Hz") == 125
    with pytest.raises(UnitError, match=r'write a gain as "0\.125Hz"'):
        parse_millihertz("0.125")


@given(st.integers(Rate.LOWEST, Rate.HIGHEST))
def test_a_rate_survives_writing_and_reading(bps: int) -> None:
    assert Rate.parse(str(Rate(bps))) == Rate(bps)


@given(st.integers(0, Duration.LONGEST))
def test_a_duration_survives_writing_and_reading(ns: int) -> None:
    assert Duration.parse(str(Duration(ns))) == Duration(ns)


@given(st.integers(0, 10**13))
def test_a_size_survives_writing_and_reading(size: int) -> None:
    assert Size.parse(str(Size(size))) == Size(size)


@given(st.integers(0, 10**9))
def test_a_fraction_survives_writing_and_reading(ppb: int) -> None:
    assert Fraction.parse(str(Fraction(ppb))) == Fraction(ppb)


@given(st.decimals(0, 10, allow_nan=False, places=12), st.sampled_from(["ns", "us", "ms", "s"]))
def test_a_duration_is_exact_or_refused(number: Any, unit: str) -> None:
    exact = Exact(str(number)) * {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    if exact.denominator == 1:
        assert Duration.parse(f"{number:f}{unit}").ns == exact
    else:
        with pytest.raises(UnitError, match="whole number of nanoseconds"):
            Duration.parse(f"{number:f}{unit}")


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for kind in (Rate, Duration, Size, Fraction, Buffer):
        try:
            kind.parse(text)
        except UnitError as refusal:
            assert "write " in str(refusal)


@given(st.integers(1, 10**6), st.integers(Rate.LOWEST, Rate.HIGHEST))
def test_the_time_of_some_bytes_carries_them(size: int, bps: int) -> None:
    ns = time_for(size, bps)
    assert bytes_in(bps, ns) >= size > bytes_in(bps, ns - 1) - 1 - bps // (8 * 10**9)


def test_bandwidth_delay_products_of_fast_links_are_exact() -> None:
    assert bdp_bytes(10**9, 10**8, 1000) == 12_500_000
    assert bdp_bytes(10**11, 2 * 10**8, 1000) == 2_500_000_000
    assert bytes_in(4 * 10**10, 10**8) == 500_000_000
    assert time_for(1538, 10**9) == 12_304


@pytest.mark.parametrize(("text", "size"), [("30Gbit", 3_750_000_000), ("8kbit", 1000), ("500MB", 500_000_000)])
def test_a_volume_is_a_size_or_counts_bits(text: str, size: int) -> None:
    assert parse_volume(text) == Size(size)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30", 'write a volume as "30MB" or "30Gbit"'),
        ("9bit", 'is not a whole number of bytes: write "1B"'),
        ("-1Gbit", 'a volume is not negative: write "1Gbit"'),
    ],
)
def test_a_volume_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnitError) as refused:
        parse_volume(text)
    assert str(refused.value) == said
