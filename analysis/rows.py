"""The choice of rows that a page shows where there are more than a person reads. Pure.

In: rows. Out: so many of them, evenly apart, and words that say so and where the others are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Row = TypeVar("Row")

MOST = 1000
"""Rows of a table."""
MOST_CERTIFICATES = 50


def spread(count: int, most: int) -> list[int]:
    """At most `most` numbers of 0 … count − 1, evenly apart, with the first and the last."""
    return list(range(count)) if count <= most else [round(at * (count - 1) / (most - 1)) for at in range(most)]


def few(rows: Sequence[Row], most: int = MOST, first: Callable[[Row], bool] = lambda row: False) -> list[Row]:
    """Rows in their order: first those that `first` chooses, then as many of the others as there is room for."""
    wanted = [index for index, row in enumerate(rows) if first(row)] if len(rows) > most else []
    taken = set(wanted)
    others = [index for index in range(len(rows)) if index not in taken]
    wanted = [wanted[at] for at in spread(len(wanted), most)]
    room = most - len(wanted)
    chosen = {*wanted, *(others[at] for at in (spread(len(others), room) if room > 1 else []))}
    return [rows[index] for index in sorted(chosen)]


def left_out(shown: int, total: int, what: str, elsewhere: str) -> str:
    """A sentence; empty where nothing is left out."""
    return f"{shown} of {total} {what} are shown, evenly apart; {elsewhere}" if shown < total else ""
