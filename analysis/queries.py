"""Several steps on the tables of a run as one: each step by itself costs more than its rows, where a table has few.

In: a query of polars. Out: its frame, and where in it groups of rows are. Nothing is rearranged: the result is that of
the steps one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def collected(query: pl.LazyFrame) -> pl.DataFrame:
    """The frame that the steps give, in their order."""
    return query.collect(optimizations=pl.QueryOptFlags.none())


def groups(*keys: NDArray[Any]) -> Iterator[slice]:
    """The rows of each group, which are contiguous, by the columns that distinguish groups."""
    if keys[0].size:
        begins = np.flatnonzero(np.any([np.diff(key) for key in keys], axis=0)) + 1
        yield from (slice(first, last) for first, last in pairwise([0, *begins.tolist(), keys[0].size]))
