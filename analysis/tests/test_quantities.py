"""Values for people."""

from __future__ import annotations

import math

from analysis import quantities


def test_units_fit() -> None:
    assert quantities.text(23_921_532_394, "ns") == "23.92 s"
    assert quantities.text(20_000, "ns") == "20 µs"
    assert quantities.text(941_200_000, "bit/s") == "941.2 Mbit/s"
    assert quantities.text(999_960_000, "bit/s") == "1 Gbit/s"
    assert quantities.text(0.025, "share") == "2.5 %"
    assert quantities.text(0.9993, "ratio") == "0.9993"
    assert quantities.text(3, "count") == "3"
    assert quantities.text(0, "ns") == "0 s"


def test_no_value_is_a_dash() -> None:
    assert quantities.text(None, "ns") == quantities.text(math.nan, "ns") == quantities.percent(None) == "–"


def test_an_interval_decides_the_digits() -> None:
    assert quantities.with_interval(23.9215e9, 23.61e9, 24.233e9, "ns") == "23.92 ± 0.31 s"
    assert quantities.with_interval(550e6, 487.6e6, 612.4e6, "bit/s") == "550 ± 62 Mbit/s"
    assert quantities.with_interval(0.99965, 0.99947, 0.99983, "ratio") == "0.9997 ± 0.0002"
    assert quantities.with_interval(1, 0.999999, 1.000001, "ratio") == "1.0000 ± 0.0001"
    assert quantities.with_interval(2e9, None, None, "ns") == "2 s"
    assert quantities.with_interval(2e9, 2e9, 2e9, "ns") == "2 s"


def test_a_column_has_one_unit() -> None:
    divisor, name = quantities.fitting([2e9, 5e8, None], "ns")
    assert name == "s"
    assert quantities.cell(5e8, None, None, divisor) == "0.5"


def test_differences_have_signs() -> None:
    assert quantities.percent(0.025) == "+2.5 %"
    assert quantities.percent(-0.1) == "−10.0 %"
