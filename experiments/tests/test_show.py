"""The user's view of runs at work, and of their results."""

from __future__ import annotations

import io
import itertools
import re
import time

import pytest
from rich.console import Console

from ewan.experiments.engine import show
from ewan.experiments.engine.progress import Board
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.record.metrics import METRICS, USUAL
from ewan.labs.record.summary import Summary
from ewan.labs.runtime.progress import RunProgress
from tests import summaries


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
    assert board.words().endswith("about 76s left"), "the second one, nearly as much slower as the first one"
    board.end(0)
    board.begin(1, run_ns)
    assert board.words().endswith("about 80s left"), "twice as long as forecast, like the first one"


@pytest.mark.parametrize(
    ("measured", "cells"),
    [
        (show.Measured(9.24e6, 9.0e6, 9.48e6, "bit/s"), ["speed (Mbit/s)", "9.240 ± 0.240", "–"]),
        (show.Measured(0.025, None, None, "share"), ["speed (%)", "2.500", "–"]),
        (show.Measured(150.5e9, 150.4e9, 150.6e9, "ns"), ["speed (s)", "150.5 ± 0.1", "–"]),
        (show.Measured(0.99931, None, None, "ratio"), ["speed", "0.9993", "–"]),
    ],
)
def test_values_are_shown_in_the_unit_that_the_first_one_fills(measured: show.Measured, cells: list[str]) -> None:
    assert show.row("speed", [measured, None]) == cells


def summary_of(**parameters: list[str]) -> Summary:
    """A point for each combination, with ten metrics of its own values; two runs each."""
    names = [name for name in USUAL if METRICS[name].unit != "count"][:10]
    points = [
        {
            "parameters": dict(zip(parameters, values, strict=True)),
            "seeds": 2,
            "metrics": {
                name: {"mean": 1e7 + at, "low": 0.9e7, "high": 1.1e7, "unit": "bit/s"} for at, name in enumerate(names)
            },
        }
        for values in itertools.product(*parameters.values())
    ]
    return summaries.summary(points)


def drawn(summary: Summary, width: int, every: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, emoji=False)
    for sheet in show.points(summary, "Sweep", width=width, every=every):
        console.print(sheet)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_of_each_step_is_a_row_for_every_step_that_is_there() -> None:
    values = {f"{metric} of {step}": {"mean": 0.5} for metric in ("share", "queue loss") for step in ("bulk", "web")}
    sheets = show.points(summaries.summary([{"metrics": values}]), "x", ["share of each step", "queue loss of web"])
    text = "\n".join(str(sheet) for sheet in sheets)
    assert "share of bulk" in text and "share of web" in text and "queue loss of web" in text
    assert "queue loss of bulk" not in text


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([], ""),
        (["share of web", "share of each step"], ""),
        (
            ["marks", "share of web", "share of each flow"],
            "no run has a value of marks, share of each flow, which the scenario names under metrics",
        ),
    ],
)
def test_a_metric_of_which_no_run_has_a_value_is_told(wanted: list[str], said: str) -> None:
    assert show.without_values(summaries.summary([{"metrics": {"share of web": {"mean": 0.5}}}]), wanted) == said
    assert show.without_values(summaries.summary([{}]), wanted) == "", "no run has measured anything"


BUFFERS = ["0.25BDP", "0.5BDP", "0.75BDP", "1BDP", "1.5BDP", "2BDP", "3BDP", "4BDP"]
SWEEPS: list[dict[str, list[str]]] = [
    {"buffer": [f"{number}ms" for number in range(32)]},
    {"buffer": BUFFERS, "congestion": ["reno", "cubic", "bbr", "htcp"]},
    {"buffer": BUFFERS, "flows": ["1", "8"], "congestion": ["cubic", "bbr"]},
]


@pytest.mark.parametrize("parameters", SWEEPS)
@pytest.mark.parametrize("width", [80, 120])
def test_a_sweep_of_32_points_is_one_screen_with_all_points(parameters: dict[str, list[str]], width: int) -> None:
    lines = drawn(summary_of(**parameters), width)
    assert len(lines) <= 22, "a blank line and the outcome follow"
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert text.count("10.00 ± 1.00") % 32 == 0 and text.count("10.00 ± 1.00") > 0
    assert all(value in text for values in parameters.values() for value in values)
    assert re.search(r"… \d metrics more: --all shows all", lines[-1]) and "points" not in lines[-1]


def test_points_that_find_no_room_are_counted_and_all_shows_them() -> None:
    sweep = summary_of(buffer=[f"{number}ms" for number in range(400)])
    lines = drawn(sweep, 80)
    shown = re.findall(r"(\d+)ms ", "\n".join(lines))
    assert sorted(map(int, shown)) == list(range(len(shown))), "the first ones"
    assert len(lines) <= 22 and f"… {400 - len(shown)} points and" in lines[-1]
    every = "\n".join(drawn(sweep, 80, every=True))
    assert every.count("10.00 ± 1.00") == 400 * 10 and "more" not in every


def test_few_points_stand_beside_each_other() -> None:
    lines = drawn(summary_of(congestion=["reno", "cubic"]), 80)
    assert lines[0] == "Sweep (2 runs a point)" and lines[1].split() == ["congestion", "reno", "cubic"]
    assert len(lines) == 12


def test_a_combination_that_was_not_run_is_a_dash() -> None:
    sweep = summary_of(buffer=BUFFERS, congestion=["reno", "cubic", "bbr", "htcp"])
    sweep = codec.replace(sweep, points=(sweep.points[0], *sweep.points[2:]))
    row = next(line for line in drawn(sweep, 80) if line.startswith("0.25BDP"))
    assert row.split("  ")[0] == "0.25BDP" and "–" in row
