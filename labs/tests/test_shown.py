"""Measured values as people read them."""

from __future__ import annotations

import math
from typing import Literal

import pytest

from ewan.labs.base.units import UnitError, parse_published
from ewan.labs.base.units.shown import (
    about,
    aligned,
    fitting,
    interval_in,
    percent,
    typographic,
    with_interval,
    written,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (23_921_532_394, "ns", "23.92 s"),
        (20_000, "ns", "20 µs"),
        (941_200_000, "bit/s", "941.2 Mbit/s"),
        (999_960_000, "bit/s", "1 Gbit/s"),
        (999_600_000, "bit/s", "999.6 Mbit/s"),
        (0.025, "share", "2.5 %"),
        (0.9993, "ratio", "0.9993"),
        (3, "count", "3"),
        (0, "ns", "0 ns"),
        (0, "count", "0"),
        (7, "segments", "7 segments"),
        (None, "ns", "–"),
        (math.nan, "ns", "–"),
    ],
)
def test_units_fit(value: float | None, unit: str, text: str) -> None:
    assert written(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (999_999_970, "bit/s", "1 Gbit/s"),
        (999_990_000, "bit/s", "999.99 Mbit/s"),
        (999_998_000, "bit/s", "999.998 Mbit/s"),
        (50_001_104, "ns", "50.0011 ms"),
        (383, "ns", "383 ns"),
        (12_499_326, "bytes", "12.4993 MB"),
        (1_000, "ppb", "0.0001 %"),
        (0, "bytes", "0 B"),
        (None, "ns", "–"),
    ],
)
def test_six_digits_are_those_of_certificates(value: float | None, unit: str, text: str) -> None:
    assert written(value, unit, 6) == text


@pytest.mark.parametrize(
    ("amount", "kind", "digits", "text"),
    [
        (941_200_000, "rate", 4, "941.2Mbit/s"),
        (999_960_000, "rate", 4, "1Gbit/s"),
        (999_940_000, "rate", 4, "999.9Mbit/s"),
        (999_600_000, "time", 3, "1s"),
        (20_000, "time", 3, "20us"),
        (12_345 * 10**9, "time", 2, "12000s"),
        (0, "size", 4, "0B"),
        (-5_000_000, "time", 3, "-5ms"),
    ],
)
def test_terminals_have_a_compact_form(
    amount: int, kind: Literal["rate", "size", "time"], digits: int, text: str
) -> None:
    assert about(amount, kind, digits) == text


def test_an_interval_decides_the_digits() -> None:
    assert with_interval(23.9215e9, 23.61e9, 24.233e9, "ns") == "23.92 ± 0.31 s"
    assert with_interval(550e6, 487.6e6, 612.4e6, "bit/s") == "550 ± 62 Mbit/s"
    assert with_interval(0.99965, 0.99947, 0.99983, "ratio") == "0.9997 ± 0.0002"
    assert with_interval(1, 0.999999, 1.000001, "ratio") == "1.0000 ± 0.0001"
    assert with_interval(0.98, 0.914, 1, "share") == "98.0 (91.4 to 100.0) %"
    assert with_interval(2e9, None, None, "ns") == "2 s"
    assert with_interval(2e9, 2e9, 2e9, "ns") == "2 s"
    assert with_interval(None, None, None, "ns") == "–"


def test_a_column_has_one_unit() -> None:
    divisor, name = fitting([2e9, 5e8, None], "ns")
    assert name == "s"
    assert interval_in(divisor, 5e8, None, None) == "0.5"
    assert fitting([0, None], "ns") == (1e9, "s")


def test_rows_of_a_terminal_line_up() -> None:
    assert aligned(1e6, 9.24e6, 9.0e6, 9.48e6) == "9.240 ± 0.240"
    assert aligned(1e9, 150.5e9, 150.4e9, 150.6e9) == "150.5 ± 0.1"
    assert aligned(1, 0.99931, None, None) == "0.9993"
    assert aligned(1, 0.98, 0.914, 1.0) == "0.9800 (0.9140 to 1.0000)"
    assert aligned(1, None, None, None) == "–"


def test_differences_have_signs() -> None:
    assert percent(0.025) == "+2.5 %"
    assert percent(-0.1) == "-10.0 %"
    assert percent(2.16987, 2) == "+216.99 %"
    assert percent(None) == "–"
    assert typographic(percent(-0.1)) == "−10.0 %"


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("8353.66Mbit/s", 8353.66e6, "bit/s"),
        ("12.5s", 12.5e9, "ns"),
        ("30Gbit", 3.75e9, "B"),
        ("0.9993", 0.9993, ""),
        ("-3", -3, ""),
        ("2.5%", 0.025, "share"),
        ("-2.5%", -0.025, "share"),
        ("150%", 1.5, "share"),
        ("100ppm", 0.0001, "share"),
    ],
)
def test_a_published_value_is_read_with_its_unit(text: str, value: float, unit: str) -> None:
    found, of = parse_published(text)
    assert found == pytest.approx(value) and of == unit


@pytest.mark.parametrize("text", ["good", "", "nan", "1e9", "12 parsecs", "%"])
def test_words_are_no_published_value(text: str) -> None:
    with pytest.raises(UnitError, match="write a value like"):
        parse_published(text)
