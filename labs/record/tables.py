"""The tables that a run leaves, as Parquet, of the columns in labs/record/columns.py, with their units in the schema.

In: polars frames. Out: files, and frames read back. Whoever writes a table (generator) and whoever judges it (analysis)
share only this module.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from ewan.labs.base import writing
from ewan.labs.record.columns import COLUMNS

FORMAT = "ewan-tables/3"

Schema = dict[str, pl.DataType]

TABLES: dict[str, Schema] = {
    name: {column: each.kind for column, each in table.columns.items()} for name, table in COLUMNS.items()
}

MORE: dict[str, Schema] = {
    name: {column: each.kind for column, each in table.more.items()} for name, table in COLUMNS.items() if table.prefix
}
"""The columns that a table may have besides."""

UNITS = {"ns": "ns", "bytes": "B", "bps": "bit/s", "segments": "segments", "packets": "packets"}

UNITLESS = ("port", "id", "seq", "ack", "flags", "digest")
"""Last parts of names of columns that are numbers of a packet's fields, or made of its bytes."""


def unit(column: str) -> str:
    """The unit of a column, by the last part of its name; empty for what has none."""
    return UNITS.get(column.rsplit("_", 1)[-1], "") if "_" in column or column in UNITS else ""


def is_more(table: str, column: str) -> bool:
    """Return whether a table may have this column besides those that it always has."""
    return table in MORE and column.startswith(COLUMNS[table].prefix)


def whole(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with the types of a table's further columns, which come as text: that of the list, if all values have
    it, else whole numbers, real numbers or words, whichever they are."""
    more = [name for name in frame.columns if is_more(table, name)]
    return frame.with_columns(_typed(frame[name], MORE[table].get(name)) for name in more)


def _typed(words: pl.Series, kind: pl.DataType | None) -> pl.Series:
    for each in (kind or pl.Int64(), pl.Int64(), pl.Float64()):
        numbers = words.cast(each, strict=False)
        if numbers.null_count() == words.null_count():
            return numbers
    return words


def empty(table: str) -> pl.DataFrame:
    """A table of this name without rows; the caller's own, who may add some."""
    return _empty(table).clone()


@functools.cache
def _empty(table: str) -> pl.DataFrame:
    return pl.DataFrame(schema=TABLES[table])


def write(directory: Path, table: str, frame: pl.DataFrame) -> None:
    """DIRECTORY/<table>.parquet; ValueError for a column too many or one too few."""
    schema = TABLES[table] | {name: kind for name, kind in frame.schema.items() if is_more(table, name)}
    if differing := set(frame.columns) ^ set(schema):
        raise ValueError(f"table {table}: columns {', '.join(sorted(differing))} are not those of its schema")
    metadata = {"format": FORMAT, "table": table, "units": json.dumps({name: unit(name) for name in schema})}
    columns = [pl.col(name).cast(kind) for name, kind in schema.items()]
    save(directory / f"{table}.parquet", frame.select(columns), metadata)


def save(path: Path, frame: pl.DataFrame, metadata: dict[str, str] | None = None) -> None:
    """A frame as Parquet, in one step: whoever reads after a crash finds a whole table or none. OSError where it cannot
    be written."""
    writing.write(path, content(frame, metadata))


def content(frame: pl.DataFrame, metadata: dict[str, str] | None = None) -> bytes:
    """A frame as the bytes of its file."""
    file = io.BytesIO()
    frame.write_parquet(file, metadata=metadata)
    return file.getvalue()


def read(directory: Path, table: str) -> pl.DataFrame:
    """The table of a run; without rows where the run has none. ValueError for another format and for damage."""
    path = directory / f"{table}.parquet"
    return _parsed(path, path) if path.exists() else empty(table)


def parse(content: bytes, path: Path) -> pl.DataFrame:
    """The table whose file has these bytes; `path` names it in errors, which are those of `read`."""
    return _parsed(io.BytesIO(content), path)


def check(source: Path | io.BytesIO, path: Path) -> None:
    """ValueError, as by `parse`, where a file does not say that it is a table of this version."""
    with _whole(path):
        _check_format(source, path)


def _parsed(source: Path | io.BytesIO, path: Path) -> pl.DataFrame:
    with _whole(path):
        _check_format(source, path)
        return pl.read_parquet(source)


def _check_format(source: Path | io.BytesIO, path: Path) -> None:
    found = pl.read_parquet_metadata(source).get("format")
    if found != FORMAT:
        raise ValueError(f"{path}: format is {found!r}, this version reads {FORMAT!r}")


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        # A panic of polars is no Exception of Python's.
        raise ValueError(f"{path}: is no whole table ({str(error).splitlines()[0]})") from None
