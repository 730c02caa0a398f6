"""Rows that a page shows where there are too many."""

from __future__ import annotations

from ewan.analysis.rows import few, left_out, spread


def test_few_are_all_shown() -> None:
    assert few([3, 1, 2], 3) == [3, 1, 2]
    assert left_out(3, 3, "points", "") == ""


def test_of_many_so_many_are_shown_in_their_order_with_the_first_and_the_last() -> None:
    assert few(list(range(100)), 5) == [0, 25, 50, 74, 99]
    assert left_out(5, 100, "points", "all are there.") == "5 of 100 points are shown, evenly apart; all are there."


def test_what_is_to_be_seen_first_is_among_them() -> None:
    found = few(list(range(100)), 10, lambda row: row in (17, 71))
    assert len(found) == 10 and {0, 17, 71, 99} <= set(found) and found == sorted(found)
    assert few(list(range(100)), 4, lambda row: row % 2 == 1) == [1, 33, 67, 99], "no room for others"


def test_spread_of_one() -> None:
    assert spread(0, 5) == []
    assert spread(6, 2) == [0, 5]
