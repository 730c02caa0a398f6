"""Tables of a run: what is written is read back, with the unit of every column in the file."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from ewan.labs.record import tables


def test_a_table_is_read_back_with_its_units(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"flow": [0], "part": [0], "time_ns": [5], "bin_ns": [5], "delivered_bytes": [0], "arrived_bytes": [1448]}
    )
    tables.write(tmp_path, "goodput", frame.select(sorted(frame.columns)))
    assert tables.read(tmp_path, "goodput").equals(frame)
    units = json.loads(pl.read_parquet_metadata(tmp_path / "goodput.parquet")["units"])
    assert units == {
        "flow": "",
        "part": "",
        "time_ns": "ns",
        "bin_ns": "ns",
        "delivered_bytes": "B",
        "arrived_bytes": "B",
    }


def test_a_table_that_a_run_does_not_have_is_empty(tmp_path: Path) -> None:
    for name, schema in tables.TABLES.items():
        assert tables.read(tmp_path, name).schema == schema


def test_a_column_too_few_and_another_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="columns arrived_bytes are not"):
        tables.write(tmp_path, "goodput", tables.empty("goodput").drop("arrived_bytes"))
    tables.empty("links").write_parquet(tmp_path / "links.parquet", metadata={"format": "ewan-tables/0"})
    with pytest.raises(ValueError, match="format is 'ewan-tables/0'"):
        tables.read(tmp_path, "links")
