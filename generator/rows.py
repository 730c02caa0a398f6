"""Rows of a run's tables, as whoever reads a generator's records gives them, and the frames that they become. Pure.

In: rows by the names of their columns (labs/record/columns.py). Out: a frame with all columns of its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from labs.record.tables import TABLES

Row = dict[str, Any]
"""A row of a table by the names of columns; what is left out is null."""
Rows = dict[str, list[Row]]
"""Rows by the name of their table."""


def frame_of(rows: Iterable[Mapping[str, Any]], table: str) -> pl.DataFrame:
    """A frame with all columns of the table; ValueError for a key that is none of them."""
    schema, there = TABLES[table], list(rows)
    if unknown := {column for row in there for column in row} - schema.keys():
        raise ValueError(f"table {table}: {', '.join(sorted(unknown))}: no column of labs/record/columns.py")
    return pl.DataFrame([{column: row.get(column) for column in schema} for row in there], schema=schema, orient="row")
