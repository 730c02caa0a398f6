"""The time left, by a synthetic clock: right within a factor of two, also when the machine's speed changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from ewan.experiments.engine.progress import Board
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.runtime.progress import RunProgress

TICK_S = 0.25
OWN_S = 60.0
"""The time that each run may take by its own clock."""
USUAL_S = 3.0
"""The wall time of a run on a machine of speed 1."""


def guesses(
    monkeypatch: pytest.MonkeyPatch,
    sizes_s: Sequence[float],
    workers: int,
    speed: Callable[[float], float],
    *,
    forecast: bool = True,
    ends: float = 1.0,
) -> list[tuple[float, int, float, float]]:
    """The moment in s at each tick, the number of runs that have ended, the time left that is shown, and the true one.

    `sizes_s`: wall time of each run at speed 1; `ends`: the share of their own time after which runs are at their
    end."""
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic_ns", lambda: round(now_s * NS_PER_SECOND))
    own_ns = round(OWN_S * NS_PER_SECOND)
    known = {number: round(size * NS_PER_SECOND) for number, size in enumerate(sizes_s)} if forecast else None
    board = Board("execution", len(sizes_s), own_ns * len(sizes_s), workers, known)
    waiting, done_s = list(range(len(sizes_s))), dict[int, float]()
    told: list[tuple[float, int, float]] = []
    while waiting or done_s:
        for number in waiting[: workers - len(done_s)]:
            waiting.remove(number)
            done_s[number] = 0.0
            board.begin(number, own_ns)
        now_s += TICK_S
        for number in list(done_s):
            done_s[number] += TICK_S * speed(now_s)
            share = min(done_s[number] / sizes_s[number], 1.0)
            board.move(number, RunProgress(0, round(own_ns * ends * share)))
            if share == 1.0:
                board.end(number)
                del done_s[number]
        left = seconds(board.words())
        told.append((now_s, len(sizes_s) - len(waiting) - len(done_s), left))
    return [(at, ended, left, now_s - at) for at, ended, left in told]


def seconds(words: str) -> float:
    """The seconds in "…, about 2.5min left"; 0 where no time is given."""
    if not words.endswith(" left"):
        return 0.0
    text = words.removesuffix(" left").rpartition(" ")[2]
    unit = text.lstrip("0123456789.")
    return float(text.removesuffix(unit)) * {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}[unit]


def within(rows: Sequence[tuple[float, int, float, float]], factor: float, since_s: float = 0.0) -> None:
    """After the first run has ended, and but for the last run's end, the guess is right within a factor."""
    judged = [row for row in rows if row[1] >= 1 and row[0] >= since_s and row[3] > USUAL_S]
    assert len(judged) > 10
    for at, ended, left, true in judged:
        assert true / factor <= left <= true * factor, f"at {at} s, after {ended} runs: {left} s for {true} s"


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("speed", [7.0, 1.0, 1 / 7])
@pytest.mark.parametrize("forecast", [True, False])
def test_a_machine_that_is_other_than_forecast(
    monkeypatch: pytest.MonkeyPatch, workers: int, speed: float, forecast: bool
) -> None:
    within(guesses(monkeypatch, [USUAL_S * 4] * 96, workers, lambda _: speed, forecast=forecast), 1.5)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_machine_that_becomes_ten_times_slower_half_way(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """It is seen within two usual runs' time: no run has ended by then that felt it whole."""
    runs = 24
    change_s = USUAL_S * runs / workers / 2
    rows = guesses(monkeypatch, [USUAL_S] * runs, workers, lambda at: 1.0 if at < change_s else 0.1)
    within(rows, 2.0, change_s + 2 * USUAL_S)
    before = [(left, true) for at, ended, left, true in rows if ended and at < change_s]
    assert all(left < true / 2 for left, true in before), "nobody foresees it"


def test_a_machine_that_becomes_ten_times_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = guesses(monkeypatch, [USUAL_S] * 48, 1, lambda at: 0.1 if at < 8 * USUAL_S * 10 else 1.0)
    within(rows, 2.0, 8 * USUAL_S * 10 + 12 * USUAL_S)


def test_runs_that_end_before_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transfer's volume is there long before the run's longest time has passed."""
    for forecast in (True, False):
        within(guesses(monkeypatch, [USUAL_S] * 24, 2, lambda _: 1.0, forecast=forecast, ends=0.2), 1.5)


def test_long_and_short_runs_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    within(guesses(monkeypatch, [2.0, 16.0] * 20, 2, lambda _: 0.5), 1.7)


def test_while_nothing_moves_on_the_time_left_is_of_this_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel is built beside, for one: runs are at work for a minute and none of them moves on."""
    found = guesses(monkeypatch, [USUAL_S] * 20, 2, lambda at: 0.0 if 12 < at < 72 else 1.0)
    assert max(left for at, _, left, _ in found if 20 < at < 72) < 3600
