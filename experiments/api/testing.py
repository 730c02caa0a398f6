"""Labs of a test: runs with the test's seed, records of a failing one, values compared with those of an earlier commit.

In: a test's directories and its seed. Out: labs as `ewan.lab` makes them, lines for the report of a failing test, and a
file of recorded values beside the tests."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from numbers import Real
from pathlib import Path
from statistics import fmean, stdev

from ewan.analysis import statistics
from ewan.analysis.api import Results
from ewan.experiments.api import experiment, values
from ewan.experiments.api.lab import Lab, lab
from ewan.experiments.api.run import RunResult
from ewan.labs.base import codec, writing
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import one_line
from ewan.labs.forwarding import node_of
from ewan.labs.record.schedule import Clock
from ewan.labs.spec import Spec
from ewan.labs.spec.names import SCENARIO

RECORDS = "ewan-records.json"
"""The file of recorded values, in the folder of the tests."""


class TestLabs:
    """The functions of `import ewan` for one test; its labs run with the test's seed."""

    __test__ = False
    UserError = UserError
    seconds = staticmethod(values.seconds)
    run = staticmethod(experiment.run)
    scenario = staticmethod(experiment.scenario)
    sweep = staticmethod(experiment.sweep)

    def __init__(self, place: Path, artifacts: Path, records: Records, seed: int | None) -> None:
        self.seed = seed
        """The seed of the mark `@pytest.mark.ewan(seeds=N)`; None: labs have their own."""
        self._place, self._artifacts, self._records = place, artifacts, records
        self._labs: list[TestLab] = []

    @staticmethod
    def load(directory: str | Path) -> Results:
        """Read an experiment's results, as `ewan.load` does."""
        return Results(Path(directory))

    def lab(self, topology: str | Mapping[str, object] = "dumbbell", **settings: object) -> Lab:
        """Make a lab as `ewan.lab` does, whose programs may read the test's tmp_path. The records of its runs stay
        there."""
        made = TestLab(lab(topology, **settings).spec, self._place / f"lab{len(self._labs) + 1}", self.seed)
        made.allow_reading(self._place)
        self._labs.append(made)
        return made

    def compare(self, name: str, value: float, *, within: float = 0.0) -> None:
        """Compare a value with that which `pytest --ewan-record` recorded.

        It may differ by the share `within` of the recorded one. A test with seeds passes, too, where the value lies
        within the interval of the recorded values of all seeds, in which a further one is with 95 %. AssertionError for
        another value, and for one that was not recorded.
        """
        self._records.compare(name, value, self.seed, within)

    def left(self) -> list[str]:
        """Lines for the report of a failing test: where the records of its runs are, and the command that repeats the
        last run. That one is run once more, with the packets of its nodes captured."""
        return [line for each in self._labs for line in each.left(self._artifacts)]


class TestLab(Lab):
    """A lab of a test."""

    __test__ = False

    def __init__(self, spec: Spec, place: Path, seed: int | None) -> None:
        super().__init__(spec)
        self._place, self._seed, self._runs = place, seed, 0
        self._last: tuple[Path, int | None, Mapping[str, object]] | None = None

    def _run(self, clock: Clock, seed: int | None, directory: Path | None, keys: Mapping[str, object]) -> RunResult:
        """The seed is that of the test, and the directory one of the test, where none is given."""
        self._runs += 1
        chosen = self._seed if seed is None else seed
        place = directory or self._place / f"run{self._runs}"
        self.scenario(chosen, **keys)  # Nothing is left of a run with mistakes.
        self._last = (place, chosen, keys)
        return super()._run(clock, chosen, place, keys)

    def ends(self) -> list[str]:
        """The nodes of its programs and flows."""
        named = (node_of(str(step[key])) for _, step in self._steps for key in ("on", "from", "to") if key in step)
        return [node for node in named if node in self.nodes]

    def left(self, artifacts: Path) -> list[str]:
        """Lines about the last run; none if the lab did not run."""
        if self._last is None:
            return []
        place, seed, keys = self._last
        lines = [f"records of the run: {place}"]
        lines += [f"{each.name} in {each.node}: {each.outcome}" for each in self.commands]
        try:
            for node in dict.fromkeys(self.ends()):
                self.capture(node)
            scenario = self.scenario(seed, **keys)
            artifacts.mkdir(parents=True, exist_ok=True)
            file = artifacts / f"{self._place.name}{SCENARIO}"
            writing.write(file, scenario.text)
            folder = artifacts / self._place.name
            experiment.execute(scenario, folder, stored=False)
            lines.append(f"tables and figures of the same run: {folder / 'report.html'}")
            lines += [f"packets of the same run: {each}" for each in sorted(folder.rglob("*.pcapng"))]
            here, path = shlex.quote(str(Path.cwd())), shlex.quote(str(file))
            lines.append(f"repeat it: cd {here} && ewan run {path} --runtime virtual")
        except (UserError, OSError) as error:
            lines.append(f"the run could not be repeated with its packets captured: {error}")
        return lines


@dataclass
class Records:
    """The recorded values of the tests of one folder. `test`: the test's name without its seed."""

    tests: Path
    test: str
    record: bool

    def __post_init__(self) -> None:
        self._new: dict[str, dict[str, float]] = {}
        self._compared: set[str] = set()

    @property
    def file(self) -> Path:
        """The file of the folder in which the test stands."""
        return self.tests.parent / RECORDS

    def compare(self, name: str, value: float, seed: int | None, within: float) -> None:
        """See `TestLabs.compare`."""
        key = str(seed or 0)
        for what, number in ((name, value), ("within", within)):
            if isinstance(number, bool) or not isinstance(number, Real) or not isfinite(number):
                raise UserError(f"{what}: {number!r} is no finite number: write one")
        if name in self._compared:
            raise UserError(f"{name}: is compared twice in {self.test}: write another name")
        self._compared.add(name)
        if self.record:
            self._new.setdefault(name, {})[key] = float(value)
            return
        known = self._read().get(self.test, {}).get(name, {})
        if key not in known:
            raise AssertionError(f"{name}: was not recorded for {self.test}: run pytest --ewan-record once")
        before, allowed = known[key], f"recorded: {known[key]:g}"
        if value == before or abs(value - before) <= within * abs(before):
            return
        if len(known) > 1:
            low, high = _next_value(list(known.values()))
            if low <= value <= high:
                return
            allowed += f"; {low:g} to {high:g} by {len(known)} seeds"
        raise AssertionError(f"{name}: {value:g} ({allowed}): see what changed, or run pytest --ewan-record")

    def close(self) -> None:
        """Write what was recorded beside what the file has of other tests."""
        if not self._new:
            return
        folder = os.open(self.file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # processes of pytest-xdist write in turn
            every = self._read()
            mine = every.setdefault(self.test, {})
            for name, found in self._new.items():
                mine.setdefault(name, {}).update(found)
            writing.write(self.file, json.dumps(every, indent=1, sort_keys=True) + "\n")
        finally:
            os.close(folder)

    def _read(self) -> dict[str, dict[str, dict[str, float]]]:
        try:
            return codec.decode(dict[str, dict[str, dict[str, float]]], self.file.read_bytes(), "records")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            remedy = "repair it, or remove it and run pytest --ewan-record"
            raise UserError(f"{self.file}: has no recorded values ({one_line(str(error))}): {remedy}") from None


def _next_value(known: Sequence[float]) -> tuple[float, float]:
    """The interval in which a further value of the same normal distribution is with 95 % (prediction interval: G. Hahn,
    "Factors for calculating two-sided prediction intervals", JASA 64, 1969)."""
    mean, number = fmean(known), len(known)
    margin = statistics.quantile(number - 1, statistics.CONFIDENCE) * stdev(known) * sqrt(1 + 1 / number)
    return mean - margin, mean + margin
