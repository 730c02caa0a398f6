"""An experiment of thousands of invented runs, for benchmarks and tests of what reads results.

In: a small experiment that was run, the points of the parameters and seeds that are wanted. Out: a directory whose runs
are copies of its complete runs, with other parameters and seeds, and amounts in their tables that differ from run to
run; with its document and all checksums. It is no result of anything: its title says so.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import polars as pl

from ewan.labs.base import codec, writing
from ewan.labs.base.codec import replace
from ewan.labs.record import journal, tables
from ewan.labs.record.experiment import DOCUMENT, Entry, ExperimentDocument, checksum, to_json

Point = Mapping[str, str | int]

AMOUNTS = ("_bytes", "_bps", "_segments", "_packets", "srtt_ns", "waited_ns")
"""Ends of the names of columns that differ between the copies of a run. Its moments stay."""
SCENARIO = "scenario.yaml"
TITLE = "Copies of {count} run{s}: made up, no result"


def points(sizes: Mapping[str, Sequence[str | int]]) -> list[dict[str, str | int]]:
    """All choices of the values of parameters."""
    return [dict(zip(sizes, values, strict=True)) for values in product(*sizes.values())]


def write(original: Path, directory: Path, wanted: Sequence[Point], seeds: Sequence[int]) -> Path:
    """The experiment's directory, which is new: a run for each point and seed, point by point."""
    document = journal.load(original)
    models = [entry for entry in document.runs if entry.status == "complete"]
    sources = [_SourceRun(original, entry, document) for entry in models]
    directory.mkdir(parents=True)
    files = {name: known for name, known in document.files.items() if not name.startswith("runs/")}
    for name in (*files, SCENARIO) if (original / SCENARIO).exists() else files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original / name, directory / name)
    runs = []
    for number, (point, seed) in enumerate(product(wanted, seeds), 1):
        source = sources[(number - 1) % len(sources)]
        entry = source.entry(number, point, seed)
        files |= source.write(directory, entry)
        runs.append(entry)
    told = TITLE.format(count=len(models), s="s" * (len(models) != 1))
    changed = codec.replace(document, title=told, runs=runs, files=files)
    writing.write(directory / DOCUMENT, to_json(changed))
    return directory


class _SourceRun:
    """A run that copies are made of, read once."""

    def __init__(self, root: Path, model: Entry, document: ExperimentDocument) -> None:
        self._model = model
        first = f"{model.directory}/"
        own = {name.removeprefix(first): known for name, known in document.files.items() if name.startswith(first)}
        self._tables = {
            name: tables.read(root / model.directory, name) for name in tables.TABLES if f"{name}.parquet" in own
        }
        made = {f"{name}.parquet" for name in self._tables}
        self._others = {
            name: ((root / model.directory / name).read_bytes(), known)
            for name, known in own.items()
            if name not in made
        }

    def entry(self, number: int, point: Point, seed: int) -> Entry:
        """The entry of one copy of the run."""
        words = [*(f"{name}={value}" for name, value in point.items()), f"seed={seed}"]
        return replace(
            self._model,
            number=number,
            name=" ".join(words),
            parameters=dict(point),
            seed=seed,
            directory=f"runs/{number:03}",
        )

    def write(self, directory: Path, entry: Entry) -> Iterator[tuple[str, str]]:
        """Writes a copy; its files with their checksums."""
        place = directory / entry.directory
        place.mkdir(parents=True)
        for name, (content, known) in self._others.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
            yield f"{entry.directory}/{name}", known
        factor = random.Random(repr(entry.parameters)).uniform(0.6, 0.9)
        factor *= random.Random(f"{entry.parameters} {entry.seed}").uniform(0.95, 1.05)
        for name, frame in self._tables.items():
            tables.write(place, name, _scaled(frame, factor))
            yield f"{entry.directory}/{name}.parquet", checksum(place / f"{name}.parquet")


def _scaled(frame: pl.DataFrame, factor: float) -> pl.DataFrame:
    """All amounts so many times."""
    return frame.with_columns(
        (pl.col(name) * factor).cast(kind)
        for name, kind in frame.schema.items()
        if name.endswith(AMOUNTS) and name not in ("rate_bps", "segment_bytes") and kind.is_numeric()
    )
