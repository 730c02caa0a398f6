"""A student at work: a folder, the commands of the text, results as a student reads them.

In: a lab and a student's number. Out: what the commands of the text gave. `ewan run` is executed as the command does
it, through the store, but no lab is verified and no report is drawn: that these work is tested elsewhere, and takes
longer than all else. Truths are computed by other code (extras/course/truths.py) from the same store.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ewan.analysis import summary
from ewan.analysis.api import Results
from ewan.experiments.engine import cli as running
from ewan.experiments.engine import engine, preparation, request
from ewan.experiments.store import Store
from ewan.experiments.tests import engines
from ewan.extras.course import amounts, folder, markdown
from ewan.extras.course.folder import Folder
from ewan.extras.course.local_executor import LocalExecutor
from ewan.extras.course.reading import Lab
from ewan.generator import scenario as scenarios
from ewan.labs import rundir
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.context import Context


@dataclass
class Desk:
    """`values`: the student's parameters as the text tells them; `place` has the folder, the store is shared."""

    lab: Lab
    folder: Folder
    store: Path

    @classmethod
    def of(cls, lab: Lab, student: str, place: Path, store: Path) -> Desk:
        """A new folder for a student below `place`."""
        return cls(lab, folder.load(folder.start(lab, student, place / student / lab.name), lab.folder.parent), store)

    @property
    def values(self) -> Mapping[str, str]:
        """As they are written, `42ms`."""
        return self.folder.drawing.texts

    def number(self, name: str) -> float:
        """A parameter in SI base units: seconds, bit/s, bytes."""
        return float(amounts.read(self.values[name]))

    @property
    def text(self) -> str:
        """What the student reads."""
        return (self.folder.path / f"{self.lab.name}.md").read_text()

    @property
    def commands(self) -> list[str]:
        """The lines of the text's blocks of commands, in order, those that draw figures aside."""
        return [line for line in markdown.commands(self.text) if not line.startswith("ewan results report")]

    @property
    def context(self) -> Context:
        """That of the student's commands."""
        return dataclasses.replace(Context.of(os.environ), store=self.store, runtime="virtual")

    def executor(self, scratch: Path) -> LocalExecutor:
        """What checks of this folder execute runs with."""
        context = self.context
        return LocalExecutor(context.reporter, context.binary, Store(self.store), scratch)

    def run(self, command: str) -> Results:
        """`ewan run FILE [--set NAME=VALUES] [--size NAME] [--seeds N] --runtime virtual`, in the folder."""
        words = shlex.split(command)
        assert words[:2] == ["ewan", "run"], f"no ewan run: {command}"
        file, options = words[2], list(zip(words[3::2], words[4::2], strict=True))
        known = {"--set", "--size", "--seeds", "--runtime"}
        assert {name for name, _ in options} <= known, f"an option that the desk does not know: {command}"
        assert ("--runtime", "virtual") in options, f"the text does not say --runtime virtual: {command}"
        said = {name: value for name, value in options if name != "--set"}
        settings = running.values_set([value for name, value in options if name == "--set"])
        seeds = int(said["--seeds"]) if "--seeds" in said else None
        with _within(self.folder.path):
            return Results(self.folder.path / _experiment(self.context, file, said.get("--size"), settings, seeds))

    def read(self, results: Results, words: str, **where: Any) -> float:
        """A metric as the student reads it off the results, in SI base units; of the one run that is so."""
        found = results.metric(words)
        frame = found.frame
        for name, value in where.items():
            frame = frame.filter(pl.col(name).cast(pl.String) == str(value))
        assert frame.height == 1, f"{words}, {where}: {frame.height} runs: {found.frame}"
        (column,) = (name for name in frame.columns if name == "value" or name.startswith("value ("))
        value = float(frame[column][0])
        return value / NS_PER_SECOND if found.unit == "ns" else value


def _experiment(context: Context, file: str, scale: str | None, settings: dict[str, str], seeds: int | None) -> Path:
    """The directory of an experiment, whose labs nobody verified."""
    read = scenarios.load(file)
    facts = request.facts_of(read, None, scale, settings, seeds, "virtual", {})
    jobs = preparation.jobs(read.runs(settings, scale, seeds), True)
    prepared = preparation.prepare(jobs, facts, virtual=True, directory=rundir.make(read.name))
    parts = dataclasses.replace(engines.parts("ok"), analyse=summary.analyse)
    assert engine.run(prepared, parts=parts, context=context) == 0
    return prepared.experiment.directory


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    """This process stands in a folder for a while, as a student does."""
    with contextlib.chdir(folder):
        yield


def written(value: float, kind: str, digits: int = 5) -> str:
    """A number in SI base units as a student writes it behind a question: `0.0421` as a time is `42.1ms`."""
    match kind:
        case "time":
            return f"{value * 1000:.{digits}g}ms"
        case "rate":
            return f"{value / 1000:.{digits}g}kbit/s"
        case "size":
            return f"{value:.{digits}g}B"
        case "packets":
            return f"{value:.{digits}g}packets"
        case "share":
            return f"{value * 100:.{digits}g}%"
        case _:
            return f"{value:.{digits}g}"
