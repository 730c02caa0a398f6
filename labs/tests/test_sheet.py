"""Tables in a narrow terminal: words and quantities stay whole."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from ewan.labs.base.sheet import GAP, Sheet, fit, folded, grid

COLUMNS = ["link", "quantity", "configured", "measured", "error", "tolerance", "verdict", "note"]
ROW = [
    "left1 to right1",
    "TCP goodput",
    "941.482 Mbit/s",
    "927.255 Mbit/s",
    "-1.5111%",
    "±94.1 Mbit/s",
    "[green]ok[/]",
    "5",
]
STATES = ["[red]outside[/]", "not measured"]


def drawn(sheet: Sheet, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, emoji=False).print(sheet)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_word_and_no_unit_is_broken(width: int) -> None:
    rows = [ROW, [*ROW[:6], STATES[0], "6"], [*ROW[:3], "14.16 Mbit/s", *ROW[4:6], STATES[1], ""]]
    lines = drawn(grid("Verification", COLUMNS, rows, keys=2), width)
    text = "\n".join(lines)
    assert all(len(line) <= width for line in lines)
    for cell in ("941.482 Mbit/s", "927.255 Mbit/s", "14.16 Mbit/s", "-1.5111%", "±94.1 Mbit/s", "outside"):
        assert cell in text, text
    assert {word for line in lines for word in line.split()} <= {
        word
        for cells in (*rows, COLUMNS, ["Verification"])
        for cell in cells
        for word in re.sub(r"\[.*?\]", "", cell).split()
    }
    if width >= 120:
        assert len(lines) == 2 + len(rows)


def test_columns_that_do_not_fit_stand_below_each_other_in_head_and_rows() -> None:
    sheet = Sheet("", ["link", "direction", "a", "b", "c"], [["core", "forward", *("x" * 20 for _ in "abc")]], keys=2)
    lines = drawn(sheet, 40)
    blank = " " * len("core  direction  ")
    assert lines == [
        "link  direction  a",
        blank + "b",
        blank + "c",
        "core  forward    " + "x" * 20,
        blank + "x" * 20,
        blank + "x" * 20,
    ]


def test_what_fits_is_drawn_as_it_is() -> None:
    lines = drawn(Sheet("Pairs", ["from", "to"], [["left1", "right1"]], caption="… and 3 more"), 80)
    assert lines == ["Pairs", "from   to", "left1  right1", "… and 3 more"]


def test_text_is_wrapped_between_words_before_anything_is_split() -> None:
    loss = "gilbert-elliott to_bad 0.1%, to_good 10%, loss_bad 50%, loss_good 0%"
    lines = drawn(Sheet("Links", ["link", "rate", "loss"], [["core", "50Mbit/s", loss]]), 50)
    assert len(lines) == 5 and lines[1].split() == ["link", "rate", "loss"]


def test_a_word_that_is_wider_than_the_terminal_is_folded() -> None:
    lines = drawn(Sheet("", ["directory"], [["results/" + "x" * 60]]), 30)
    assert "".join(lines[1:]) == "results/" + "x" * 60 and all(len(line) <= 30 for line in lines)


def test_a_quantity_within_a_text_stays_whole() -> None:
    text = "late by 7.29 µs at p99, 4.02 ± 0.15 ms at worst, 4 of 20 (12 %) were"
    for width in range(14, 40):
        found = drawn(Sheet("", ["found"], [[text]]), width)
        assert all(any(each in line for line in found) for each in ("7.29 µs", "4.02 ± 0.15 ms", "(12 %)"))
        assert " ".join(found[1:]) == text and all(len(line) <= width for line in found)


def test_a_row_of_intervals_is_not_broken_at_any_width() -> None:
    cells = ["7.607 ± 0.558", "0.8963 ± 0.1060"]
    for width in (30, 36, 60):
        text = "\n".join(drawn(Sheet("", ["metric", "reno", "cubic"], [["goodput", *cells]]), width))
        assert all(cell in text for cell in cells)


def test_lines_of_a_row_and_widths() -> None:
    assert folded([5, 5, 5], 100, 1) == [[0, 1, 2]]
    assert folded([5, 5, 5], 5 + GAP + 5, 1) == [[0, 1], [0, 2]]
    assert folded([5, 5, 9, 5, 9], 5 + 2 * (GAP + 9), 1) == [[0, 1, 2], [0, 3, 4]]
    assert folded([44, 7, 5, 40, 4], 80, 0) == [[0, 1, 2], [3, 4]], "what is wide below what is wide"
    assert folded([50, 50], 10, 1) == [[0, 1]]
    assert folded([], 10, 1) == [[]]
    assert fit([(3, 10), (4, 30)], 30) == [10, 18]
    assert fit([(3, 10), (20, 30)], 30) == [8, 20]
    assert sum(fit([(30, 30), (20, 30)], 30)) == 30 - GAP
