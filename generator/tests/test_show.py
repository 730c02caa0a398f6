"""What a user sees while runs are at work, and of their results."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from generator.engine import (
    show,
)
from generator.engine.progress import Board
from labs.runtime.progress import RunProgress
from labs.units import NS_PER_MS, NS_PER_SECOND


def test_a_run_that_is_held_up_is_seen_in_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven runs of a minute took 3 s each; the twelfth has come to 0.6 s of it in 100 s, and needs hours."""
    now_ns = 0
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    board = Board("execution", 12, 12 * 60 * NS_PER_SECOND)
    for number in range(12):
        board.begin(number, 60 * NS_PER_SECOND)
        if number == 11:
            break
        now_ns += 3 * NS_PER_SECOND
        board.move(number, RunProgress(3 * NS_PER_SECOND, 60 * NS_PER_SECOND))
        board.end(number)
    assert board.words() == "execution: 11 of 12 runs have ended, about 3s left"
    now_ns += 100 * NS_PER_SECOND
    board.move(11, RunProgress(100 * NS_PER_SECOND, 600 * NS_PER_MS))
    left = re.fullmatch(r".*, about (\d+)s left", board.words())
    assert left is not None and 1000 < int(left[1]) < 10_000, board.words()


def test_the_time_left_is_forecast_before_a_run_has_shown_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs, forecast to take 40 s each; the first one takes twice as long."""
    now_ns = 0
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    run_ns = 80 * NS_PER_SECOND
    board = Board("execution", 2, 2 * run_ns, forecast_ns={0: 40 * NS_PER_SECOND, 1: 40 * NS_PER_SECOND})
    board.begin(0, run_ns)
    assert board.words().endswith("about 80s left")
    for _ in range(8):
        now_ns += 10 * NS_PER_SECOND
        board.move(0, RunProgress(now_ns, now_ns))
    assert board.words().endswith("about 40s left"), "the second one, as it was forecast"
    board.end(0)
    board.begin(1, run_ns)
    assert board.words().endswith("about 80s left"), "twice as long as forecast, like the first one"


@pytest.mark.parametrize(
    ("measured", "cells"),
    [
        ({"mean": 9.24e6, "low": 9.0e6, "high": 9.48e6, "unit": "bit/s"}, ["speed (Mbit/s)", "9.240 ± 0.240", "–"]),
        ({"mean": 0.025, "low": None, "high": None, "unit": "share"}, ["speed (%)", "2.500", "–"]),
        ({"mean": 150.5e9, "low": 150.4e9, "high": 150.6e9, "unit": "ns"}, ["speed (s)", "150.5 ± 0.1", "–"]),
        ({"mean": 0.99931, "low": None, "high": None, "unit": "ratio"}, ["speed", "0.9993", "–"]),
    ],
)
def test_values_are_shown_in_the_unit_that_the_first_one_fills(measured: dict[str, Any], cells: list[str]) -> None:
    assert show.row("speed", [measured, None]) == cells
