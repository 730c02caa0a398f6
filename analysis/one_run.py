"""One run of the virtual clock, of which only the bytes of its files are there: its metrics and series, by their names.

In: the files that the run left, by their names in its directory, with its plan and its schedule. Out: values in SI base
units (seconds, bit/s, bytes, ratios), for whoever asks for some numbers of a run and needs no experiment and no report.
The computations are those of reports.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.analysis import load, metrics
from ewan.analysis.figures import series
from ewan.analysis.rundata import RunData
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.wording import nearest
from ewan.labs.record import quantities, tables
from ewan.labs.record import schedule as schedules
from ewan.labs.record.quantities import Selection
from ewan.labs.record.series import SERIES, series_named

Line = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Times in seconds from T0, and values."""
WINDOW_NS = NS_PER_SECOND // 10
"""The length of the windows whose means put several flows together, and in which events are counted."""


class SingleRun:
    """A run. ValueError for words that are no metric or series, and for tables that cannot be read."""

    def __init__(self, files: Mapping[str, bytes], plan: bytes, schedule: bytes) -> None:
        self._files, self._plan, self._schedule = files, plan, schedule
        self._tables: dict[str, pl.DataFrame] = {}

    def table(self, name: str) -> pl.DataFrame:
        """A table of docs/reference/metrics.md; without rows where the run has none."""
        if name not in tables.TABLES:
            raise ValueError(f"unknown table {name!r}: {nearest(name, tables.TABLES)}")
        if name not in self._tables:
            content = self._files.get(f"{name}.parquet")
            self._tables[name] = tables.empty(name) if content is None else tables.parse(content, Path(name))
        return self._tables[name]

    def metric(self, words: str) -> float | None:
        """A metric of the load, or of the selection in the words; None where the run does not have it."""
        quantity = quantities.parse(words)
        found = dict(metrics.computed([quantity], self._data))
        if len(found) > 1:
            raise ValueError(f"{words}: stands for several values: {', '.join(found)}: write one of them")
        value = next(iter(found.values()), None)
        return value if value is None or quantity.metric.unit != "ns" else value / NS_PER_SECOND

    def series(self, name: str, step: str = "", flow: str = "", link: str = "", window: float = 0.0) -> dict[str, Line]:
        """The lines of a series, by their labels: of the load's flows together, of a step's, of one flow, of a link.
        `window`: means over so many seconds; 0: each sample of a single flow."""
        if (entry := series_named(name)) is None:
            raise ValueError(f"unknown series {name!r}: {nearest(name, SERIES)}")
        wanted = series.SeriesChoice(
            entry,
            round(window * NS_PER_SECOND) or WINDOW_NS,
            selection=Selection(None, step) if step else None,
            flows=flow or None,
            link=link,
            fine=not window,
            most=sys.maxsize,
        )
        per = NS_PER_SECOND if entry.unit == "ns" else 1
        return {
            label: (np.asarray(line.times, float) / NS_PER_SECOND, np.asarray(line.values, float) / per)
            for label, line in series.of_run(self._data, wanted).items()
        }

    @cached_property
    def _data(self) -> RunData:
        return RunData(
            self.table,
            schedules.unnamed_from_json(self._schedule).paths,
            lambda: codec.decode(load.PlanNodes, self._plan, "plan").addresses,
        )
