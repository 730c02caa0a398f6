"""Tables of a run that its own programs left as CSV in $EWAN_OUT: Parquet with units in the schema.

In: frames with the unit of each column. Out: RUN/own/<step>.<file>.parquet, and tables read back. Whoever makes them
(generator) and whoever reads them (analysis) share only this module. Their columns are the programs'; the
first two are `node` and `command`, which say whose a row is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ewan.labs.record import tables

FORMAT = "ewan-own-table/1"
FOLDER = "own"
ENDING = ".parquet"
WHOSE = ("node", "command")


@dataclass(frozen=True)
class OwnTable:
    """`units`: of the columns that have one."""

    frame: pl.DataFrame
    units: Mapping[str, str]


def path_of(name: str) -> str:
    """The path of the table of this name, `<step>.<file>`, in the run's directory."""
    return f"{FOLDER}/{name}{ENDING}"


def name_of(path: str) -> str | None:
    """The name of the table that is in a file of a run's directory; None: it is none of these."""
    if not path.startswith(f"{FOLDER}/") or not path.endswith(ENDING):
        return None
    return path.removeprefix(f"{FOLDER}/").removesuffix(ENDING)


def write(directory: Path, name: str, table: OwnTable) -> None:
    """Replaces the table in one step: whoever reads after a crash finds a whole one or none."""
    path = directory / path_of(name)
    path.parent.mkdir(exist_ok=True)
    metadata = {"format": FORMAT, "table": name, "units": json.dumps(dict(table.units))}
    tables.save(path, table.frame, metadata)


def read(directory: Path, name: str) -> OwnTable:
    """ValueError for another format and for damage."""
    path = directory / path_of(name)
    try:
        metadata = pl.read_parquet_metadata(path)
        if metadata.get("format") != FORMAT:
            raise ValueError(f"{path}: format is {metadata.get('format')!r}, this version reads {FORMAT!r}")
        return OwnTable(pl.read_parquet(path), json.loads(metadata["units"]))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, KeyError) as error:
        # A panic of polars is no Exception of Python's.
        raise ValueError(f"{path}: is no whole table ({str(error).splitlines()[0]})") from None
