"""Results in Python, for notebooks: `import ewan; study = ewan.load("results/…")`.

In: an experiment's directory. Out: polars frames whose columns carry their unit in the name, as in `value (bit/s)`.
What is not there is an empty frame; what cannot be read, or asked for, is a ValueError of one line.

    study.metric("utilisation").by("buffer", "congestion")
    study.metric("aggregate goodput of each step").frame
    study.table("flows")
    study.packets().one_way_delays("left1", "right1")
    study.figure("utilisation by buffer, lines congestion")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from analysis import load, metrics, statistics, summary
from analysis.figures import asked
from analysis.figures.request import FigureError
from analysis.figures.style import STYLES, Drawing
from analysis.packets import Packets
from analysis.rundata import RunData
from labs.record import figures, quantities, tables
from labs.record.quantities import Quantity
from labs.wording import nearest


@dataclass(frozen=True)
class Values:
    """A quantity of every run.

    `frame`: a row a run, with the columns run, seed, the parameters, quantity, `value (UNIT)`; of `each step` and the
    like a row for each of them.
    """

    unit: str
    frame: pl.DataFrame
    confidence: float
    bounds: statistics.Bounds = statistics.UNBOUNDED
    """Between what such values can be."""

    def by(self, *parameters: str) -> pl.DataFrame:
        """Mean and confidence interval for each choice of these parameters, over all runs that have it.

        Columns: the parameters, quantity, `mean (UNIT)`, `low (UNIT)`, `high (UNIT)`, n, kind (of the
        interval: docs/analysis.md). Without bounds and kind where n is 1.
        ValueError for a parameter that is none.
        """
        known = [name for name in self.frame.columns if name not in ("run", "seed", "quantity", self._value)]
        for name in parameters:
            if name not in known:
                raise ValueError(
                    f"unknown parameter {name!r}: write one of {', '.join(known) or 'none, there is none'}"
                )
        rows = []
        for key, group in self.frame.group_by([*parameters, "quantity"], maintain_order=True):
            found = statistics.interval(group[self._value].to_list(), self.confidence, self.bounds)
            bounds = {"mean": found.mean, "low": found.low, "high": found.high}
            named = {_named(name, self.unit): value for name, value in bounds.items()}
            rows.append(
                {**dict(zip([*parameters, "quantity"], key, strict=True)), **named, "n": found.n, "kind": found.kind}
            )
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def _value(self) -> str:
        return _named("value", self.unit)


class Results:
    """An experiment. `document`: experiment.json, typed (labs/record/experiment.py)."""

    def __init__(self, directory: Path) -> None:
        self._experiment = load.experiment(directory)
        self.directory = directory
        self.document = self._experiment.document

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row a run: run, seed, the parameters, status, directory."""
        rows = [
            {"run": run.number, "seed": run.seed, **_words(run.parameters), "status": run.status}
            | {"directory": str(run.directory)}
            for run in self._experiment.runs
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those that differ between runs."""
        return self._experiment.varied

    def table(self, name: str) -> pl.DataFrame:
        """A table (docs/metrics.md) of all runs, with run, seed and the parameters before its own columns; ValueError
        for an unknown one."""
        if name not in tables.TABLES:
            raise ValueError(f"unknown table {name!r}: {nearest(name, tables.TABLES)}")
        found = self._experiment.frame(name)
        return found.rename({column: column.removeprefix(load.PARAMETER) for column in self._prefixed(found)})

    def packets(self) -> Packets:
        """The packets that the scenario captured (docs/experiments.md), of all runs."""
        return Packets(self.table("packets"))

    def _prefixed(self, frame: pl.DataFrame) -> Sequence[str]:
        """Parameters whose own name is no column of the table."""
        named = [column for column in frame.columns if column.startswith(load.PARAMETER)]
        return [column for column in named if column.removeprefix(load.PARAMETER) not in frame.columns]

    def metric(self, words: str) -> Values:
        """A metric of the load, or of whom the words say (`METRIC of WHO`).

        Of the complete runs of each point, or where it has none, of those that measured something. ValueError for words
        that are no metric.
        """
        quantity = quantities.parse(words)
        rows: list[dict[str, Any]] = []
        for runs in self._experiment.points.values():
            for run in summary.usable(runs):
                own = {"run": run.number, "seed": run.seed, **_words(run.parameters)}
                rows += [
                    {**own, "quantity": name, _named("value", quantity.metric.unit): value}
                    for name, value in self._values(run, quantity).items()
                ]
        frame = pl.DataFrame(rows, infer_schema_length=None)
        confidence = float(self.document.confidence or statistics.CONFIDENCE)
        return Values(quantity.metric.unit, frame, confidence, quantity.metric.bounds)

    def figure(self, line: str, style: str = "page", kinds: Sequence[str] = ()) -> Drawing:
        """A figure that is asked for in one line (docs/figures.md), which a notebook shows; `kinds`: pdf, png.

        ValueError for what is no figure, no style, or cannot be drawn.
        """
        if style not in STYLES:
            raise ValueError(f"unknown style {style!r}: {nearest(style, STYLES)}")
        spec = figures.parse(line)
        found = summary.for_figure(self._experiment, spec.quantities)
        (drawing,) = asked.draw(self._experiment, found, [spec], STYLES[style], kinds)
        if isinstance(drawing, str):
            raise FigureError(drawing)
        return drawing

    def _values(self, run: load.RunResults, quantity: Quantity) -> Mapping[str, float]:
        found = dict(metrics.computed([quantity], RunData.read(run)))
        run.forget()
        return found


def _words(parameters: Mapping[str, Any]) -> dict[str, str | None]:
    """Values as they are written in the scenario; a parameter that a point does not have is null."""
    return {name: None if value in load.NOTHING else str(value) for name, value in parameters.items()}


def _named(name: str, unit: str) -> str:
    """`value (bit/s)`; what is a ratio, a share or a count has no unit."""
    return name if unit in ("ratio", "count") else f"{name} ({unit})"
