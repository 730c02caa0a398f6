"""Windows of a given length have a bound, whatever times a table has."""

from __future__ import annotations

import polars as pl
import pytest

from ewan.analysis.figures import windows
from ewan.analysis.figures.request import FigureError
from ewan.labs.base.units import NS_PER_DAY, NS_PER_MS


def test_a_table_that_goes_on_for_years_is_refused_before_anything_is_made() -> None:
    table = pl.DataFrame(
        {"flow": [0], "part": [0], "time_ns": [10_000 * NS_PER_DAY], "bin_ns": [NS_PER_MS], "bytes": [1]}
    )
    with pytest.raises(FigureError, match="goodput goes until 864000000s: too long for windows of 1ms"):
        windows.goodput_grid(table, length=NS_PER_MS)
    length, grid = windows.goodput_grid(table)
    assert length > NS_PER_DAY and grid.height == 1
