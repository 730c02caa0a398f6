"""Experiments in Python: the same as `ewan run`, of a scenario by its name, its file or its text.

In: a scenario, values of its parameters. Out: the experiment's results, as polars frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ewan.experiments import scenarios
from ewan.experiments.engine.parts import Parts
from ewan.experiments.engine.request import ExperimentRequest, ScenarioRequest
from ewan.generator.scenario import Scenario
from ewan.generator.scenario import scenario as scenario_files
from ewan.labs import rundir
from ewan.labs.base.errors import UserError
from ewan.labs.base.reporter import SilentReporter
from ewan.labs.context import Context
from ewan.labs.record.schedule import Clock
from ewan.labs.runtime.base import Name
from ewan.labs.spec.names import SCENARIO

if TYPE_CHECKING:
    from ewan.analysis.api import Results

Setting = str | int | float
"""A value of a parameter of a scenario."""


def scenario(source: str | Path) -> Scenario:
    """A scenario: a name of labs/library, the path of a file, or its text, which has several lines. UserError for a
    mistake in it."""
    if isinstance(source, str) and "\n" in source:
        return scenario_files.parse(source, Path.cwd() / f"scenario{SCENARIO}")
    return scenarios.load(str(source))[0]


def run(
    source: Scenario | str | Path,
    *,
    size: str | None = None,
    seeds: int | None = None,
    clock: Clock = "virtual",
    directory: str | Path | None = None,
    again: bool = False,
    **settings: Setting | Sequence[Setting],
) -> Results:
    """Run a scenario as `ewan run` does: `ewan.run("first", rate="10Mbit/s", seeds=3)`.

    `size`, `seeds` and `again` are the options of `ewan run`; `settings` are values of its parameters, and a list of
    values is a sweep. `clock`: `"virtual"`, or `"live"`, which needs root. `directory`: where the experiment stays; a
    new one in results/ if absent. UserError where it cannot run, or where a run is not complete.
    """
    words = {key: _words(value) for key, value in settings.items()}
    asked = ScenarioRequest(size, words, seeds, unverified=False, labels={}, fresh=again)
    return _complete(source, asked, clock, None if directory is None else Path(directory))


def check_clock(clock: str) -> None:
    """UserError for the name of no clock."""
    if clock not in ("virtual", "live"):
        raise UserError(f'clock="{clock}": write "virtual" or "live"')


PLAIN = ScenarioRequest(None, {}, None, unverified=False, labels={})
"""Runs as a scenario says."""


def execute(
    found: Scenario, place: Path, clock: Clock = "virtual", asked: ScenarioRequest = PLAIN, *, stored: bool = True
) -> int:
    """Run an experiment in a directory, and say nothing; the exit status is 1 if something is missing. `stored`: its
    runs are kept in the store of results."""
    runtime: Name = "virtual" if clock == "virtual" else "netns"
    context = replace(Context.of(os.environ), reporter=SilentReporter(), runtime=runtime)
    context = context if stored else replace(context, store=None)
    if clock != "virtual" and os.geteuid() != 0:
        raise UserError('clock="live" needs root: write clock="virtual", or run this as root')
    request = ExperimentRequest(context, found, Parts.default(), asked, clock == "virtual")
    place.mkdir(parents=True, exist_ok=True)
    return request.execute(place)


def sweep(
    source: Scenario | str | Path, parameters: Mapping[str, Sequence[Setting]], *, seeds: int | None = None
) -> Results:
    """Run a scenario at each combination of values, and return all results:
    `ewan.sweep("first", {"rate": ["10Mbit/s", "20Mbit/s"], "buffer": ["1BDP", "2BDP"]}, seeds=3)`."""
    if not isinstance(parameters, Mapping):
        raise UserError(f'{parameters!r}: write the values by the names of parameters, as {{"rate": ["10Mbit/s"]}}')
    words = {key: _words(value) for key, value in parameters.items()}
    return _complete(source, replace(PLAIN, settings=words, seeds=seeds))


def _complete(
    source: Scenario | str | Path, asked: ScenarioRequest, clock: Clock = "virtual", directory: Path | None = None
) -> Results:
    """The results of an experiment; UserError where a run is not complete."""
    check_clock(clock)
    if asked.seeds is not None and (not isinstance(asked.seeds, int) or asked.seeds < 1):
        raise UserError(f"seeds={asked.seeds!r}: write a whole number from 1 on")
    found = source if isinstance(source, Scenario) else scenario(source)
    place = rundir.make(found.name) if directory is None else directory
    if execute(found, place, clock, asked):
        raise UserError(f"{place}: not complete: {_first_error(place)}")
    from ewan.analysis.api import Results

    return Results(place)


def _words(value: Setting | Sequence[Setting]) -> str:
    """Values of a parameter as `--set` has them."""
    return ",".join(str(each) for each in value) if isinstance(value, (list, tuple)) else str(value)


def _first_error(directory: Path) -> str:
    """The reason why the first run that is not complete is so."""
    from ewan.experiments.engine.experiment import Experiment

    runs = Experiment.load(directory).runs
    return next((f"run {each.number}: {each.error}" for each in runs if each.error), "a run is missing")
