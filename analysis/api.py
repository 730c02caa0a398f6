"""Results in Python, for notebooks: `import ewan; study = ewan.load("results/…")`.

In: an experiment's directory. Out: polars frames whose columns carry their unit in the name, as in `value (bit/s)`.
Missing data are an empty frame; data or requests that cannot be read are a ValueError of one line.

    study.metric("utilisation").by("buffer", "congestion")
    study.metric("aggregate goodput of each step").frame
    study.table("flows")
    study.scan("goodput").filter(pl.col("time_ns") > 10**10).collect()
    study.packets().one_way_delays("left1", "right1")
    study.figure("utilisation by buffer, lines congestion")
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from ewan.analysis import load, measurement_cache, metrics, statistics, summary
from ewan.analysis.figures import custom
from ewan.analysis.figures.request import FigureError
from ewan.analysis.figures.style import STYLES, Cell, Drawing
from ewan.analysis.packets import Packets
from ewan.analysis.rundata import RunData
from ewan.labs.base.wording import nearest
from ewan.labs.record import figures, quantities, tables
from ewan.labs.record.quantities import Quantity
from ewan.labs.record.scenario_requests import Parameter


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
        interval: docs/how-to/experiments/results.md). Without bounds and kind where n is 1.
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
        """The names of the parameters that differ between runs."""
        return self._experiment.varied

    @property
    def so_far(self) -> str:
        """The number of complete runs out of all, on which every other result rests: `900 of 1000 runs complete`."""
        return self._experiment.so_far

    @property
    def tables(self) -> pl.DataFrame:
        """A row a table: table, runs that have it, rows in all, columns; no table is opened. Rows are null where no
        report has counted them."""
        known, measured_runs = (
            measurement_cache.rows(self._experiment),
            [run for run in self._experiment.runs if run.measured],
        )
        rows = []
        for name, schema in tables.TABLES.items():
            having = [run.number for run in measured_runs if run.has(name)]
            counts = [known[number].get(name) for number in having if number in known]
            told = [count for count in counts if count is not None]
            total = sum(told) if len(told) == len(having) else None
            rows.append({"table": name, "runs": len(having), "rows": total, "columns": list(schema)})
        kinds: dict[str, pl.DataType] = {
            "table": pl.String(),
            "runs": pl.Int64(),
            "rows": pl.Int64(),
            "columns": pl.List(pl.String),
        }
        return pl.DataFrame([row for row in rows if row["runs"]], schema=kinds)

    def table(self, name: str) -> pl.DataFrame:
        """A table (docs/reference/metrics.md) of all runs, with run, seed and the parameters before its own columns;
        ValueError for an unknown one, and where one is damaged."""
        self._known(name)
        return self._experiment.frame(name).rename(self._shorter(name))

    def scan(self, name: str, runs: Collection[int] | None = None) -> pl.LazyFrame:
        """The same as a query that reads the files when it is collected, and of them the columns that it asks for:
        `study.scan("goodput").group_by("run").agg(…).collect()`. `runs`: the numbers of the runs to read; None: all."""
        self._known(name)
        return self._experiment.scan(name, runs).rename(self._shorter(name), strict=False)

    def _known(self, name: str) -> None:
        if name not in tables.TABLES:
            raise ValueError(f"unknown table {name!r}: {nearest(name, tables.TABLES)}")

    def packets(self) -> Packets:
        """The packets that the scenario captured (docs/how-to/experiments/experiments.md), of all runs."""
        return Packets(self.table("packets"))

    def _shorter(self, table: str) -> dict[str, str]:
        """The columns of parameters whose own name is no column of the table, and that name."""
        taken = {"run", "seed", *tables.TABLES[table]}
        runs = [run for run in self._experiment.runs if run.measured]
        names = dict.fromkeys(name for run in runs for name in run.parameters)
        return {load.PARAMETER + name: name for name in names if name not in taken}

    def metric(self, words: str) -> Values:
        """A metric of the load, or of the selection in the words (`METRIC of WHO`).

        Of the complete runs of each point, or where it has none, of those that measured something. ValueError for words
        that are no metric."""
        quantity = quantities.parse(words)
        rows: list[dict[str, Cell]] = []
        values = self._values(quantity)
        for runs in self._experiment.points.values():
            for run in summary.usable(runs):
                own = {"run": run.number, "seed": run.seed, **_words(run.parameters)}
                rows += [
                    {**own, "quantity": name, _named("value", quantity.metric.unit): value}
                    for name, value in values(run).items()
                ]
        frame = pl.DataFrame(rows, infer_schema_length=None)
        confidence = float(self.document.confidence or statistics.CONFIDENCE)
        return Values(quantity.metric.unit, frame, confidence, quantity.metric.bounds)

    def figure(self, line: str, style: str = "page", kinds: Sequence[str] = ()) -> Drawing:
        """A figure that is asked for in one line (docs/how-to/experiments/figures.md), which a notebook shows; `kinds`:
        pdf, png.

        ValueError for what is no figure, no style, or cannot be drawn.
        """
        if style not in STYLES:
            raise ValueError(f"unknown style {style!r}: {nearest(style, STYLES)}")
        spec = figures.parse(line)
        found = summary.for_figure(self._experiment, spec.quantities)
        (drawing,) = custom.draw(self._experiment, found, [spec], STYLES[style], kinds)
        if isinstance(drawing, str):
            raise FigureError(drawing)
        return drawing

    def _values(self, quantity: Quantity) -> Callable[[load.RunResults], Mapping[str, float]]:
        """A function that gives a run's values of a quantity. For many runs all metrics of the load are computed at
        once, and kept."""
        if sum(run.measured for run in self._experiment.runs) < measurement_cache.FEWEST_KEPT:
            return lambda run: self._value(run, quantity)
        name = str(quantity)
        words = measurement_cache.LOAD if quantity.selection is None else name
        found = measurement_cache.of_runs(self._experiment, [quantity] if quantity.selection else [])
        of_load = {number: each.asked[words] for number, each in found.items()}
        if quantity.selection is not None:
            return lambda run: of_load[run.number]
        return lambda run: {name: of_load[run.number][name]} if name in of_load[run.number] else {}

    def _value(self, run: load.RunResults, quantity: Quantity) -> Mapping[str, float]:
        found = dict(metrics.computed([quantity], RunData.read(run)))
        run.forget()
        return found


def _words(parameters: Mapping[str, Parameter]) -> dict[str, str | None]:
    """Values as they are written in the scenario; a parameter that a point does not have is null."""
    return {name: None if value in load.NOTHING else str(value) for name, value in parameters.items()}


def _named(name: str, unit: str) -> str:
    """The name with its unit, as in `value (bit/s)`; ratios and counts have no unit."""
    return name if unit in ("ratio", "count") else f"{name} ({unit})"
