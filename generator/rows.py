"""Rows of a run's tables, as readers of a generator's records give them, and the frames that they become. Pure.

In: rows by the names of their columns (labs/record/columns.py). Out: a frame with all columns of its table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ewan.labs.record.tables import TABLES

Value = str | int | float | bool | None
"""A cell of a table."""
Row = dict[str, Value]
"""A row of a table by the names of columns; what is left out is null."""
Rows = dict[str, list[Row]]
"""Rows by the name of their table."""


def number(row: Row, column: str) -> int:
    """A cell that is a whole number; TypeError for another one."""
    value = row[column]
    if not isinstance(value, int):
        raise TypeError(f"{column} is no whole number")
    return value


def text(row: Row, column: str) -> str:
    """A cell that is a text; TypeError for another one."""
    value = row[column]
    if not isinstance(value, str):
        raise TypeError(f"{column} is no text")
    return value


WRONG = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions that readers may raise for an output of another program."""
_MOST = {pl.Int64(): 2**63, pl.Int32(): 2**31, pl.Int16(): 2**15, pl.Int8(): 2**7}
_MOST_TEXT = 4096
"""Characters of a text that a program printed."""


def bounded(rows: Iterable[Mapping[str, Value]], table: str) -> tuple[list[Row], int]:
    """The rows whose values the columns of a table can hold, and how many are left out.

    What programs print may be anything: a number of a hundred digits, infinity, a word in place of a number.
    """
    schema, kept, left_out = TABLES[table], [], 0
    for row in rows:
        try:
            kept.append({column: _fitting(value, schema.get(column)) for column, value in row.items()})
        except (TypeError, ValueError, OverflowError):
            left_out += 1
    return kept, left_out


def _fitting(value: Any, kind: pl.DataType | type[pl.DataType] | None) -> Any:
    """The same value, text without its end; ValueError for one that a column of this kind cannot hold."""
    if value is None or kind is None:
        return value
    if kind == pl.String:
        return str(value)[:_MOST_TEXT].encode(errors="replace").decode()
    if kind == pl.Boolean:
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{type(value).__name__} for a number")
    if kind == pl.Float64 or kind == pl.Float32:
        return float(value)
    most = next((limit for known, limit in _MOST.items() if known == kind), 2**63)
    if not -most <= value < most:
        raise OverflowError
    return round(value) if isinstance(value, float) and not value.is_integer() else int(value)


def frame_of(rows: Iterable[Mapping[str, Value]], table: str) -> pl.DataFrame:
    """A frame with all columns of the table; ValueError for a key that is none of them."""
    schema, there = TABLES[table], list(rows)
    if unknown := {column for row in there for column in row} - schema.keys():
        raise ValueError(f"table {table}: {', '.join(sorted(unknown))}: no column of labs/record/columns.py")
    return pl.DataFrame([{column: row.get(column) for column in schema} for row in there], schema=schema, orient="row")
