"""Runs that are over, shown again: the data of each, and its links and flows over time.

In: names of experiments, numbers of runs. Out: the drawing of a run's own plan, and series of a part of the run, of a
bounded size (`ewan.analysis.replay`). A run whose experiment goes on can be shown as far as its tables are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import orjson
from starlette.routing import BaseRoute

from ewan.analysis import load
from ewan.analysis.load import PLAN, ExperimentResults
from ewan.analysis.replay import FlowPiece, Piece, Replay, RunEvent, RunFlow
from ewan.experiments.engine import source
from ewan.extras.studio.server.api import Endpoint
from ewan.extras.studio.server.drawing import Drawing, DrawnLink, drawing, lines
from ewan.extras.studio.server.files import RefusedError
from ewan.extras.studio.server.results import NAME
from ewan.labs import change
from ewan.labs import plan as plans
from ewan.labs.base.product import RESULTS
from ewan.labs.link import Change
from ewan.labs.plan import Plan
from ewan.labs.record.experiment import Clock, Status

NUMBER = re.compile(r"\d{1,9}")
MOST_RUNS = 2000
MOST_CHANGES = 100


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run that can be shown again."""

    number: int
    name: str
    status: Status


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of an experiment; `more`: the number of further ones."""

    experiment: str
    scenario: str
    runs: tuple[RunRow, ...]
    more: int


@dataclass(frozen=True, slots=True)
class ChangedLinks:
    """Links as they are from a moment on."""

    at_ns: int
    links: tuple[DrawnLink, ...]


@dataclass(frozen=True, slots=True)
class ShownRun:
    """The data of a run. `levels_ns`: lengths of bins, the finest first; `bins`: their number in one piece."""

    experiment: str
    scenario: str
    run: int
    name: str
    clock: Clock
    drawing: Drawing
    changes: tuple[ChangedLinks, ...]
    events: tuple[RunEvent, ...]
    flows: tuple[RunFlow, ...]
    more_flows: int
    end_ns: int
    levels_ns: tuple[int, ...]
    bins: int


class Replays:
    """The replays of runs in the directory where Studio was started."""

    def __init__(self, here: Path) -> None:
        self._place = here / RESULTS
        self._lock = Lock()
        self._kept: tuple[ExperimentResults | None, dict[int, Replay]] = (None, {})

    def runs(self, name: str) -> Runs:
        """Runs of an experiment that can be shown again."""
        with _refused():
            found = self._experiment(name)
        there = [run for run in found.runs if run.measured]
        rows = tuple(RunRow(run.number, run.name, run.status) for run in there[:MOST_RUNS])
        return Runs(name, found.document.scenario, rows, len(there) - len(rows))

    def about(self, name: str, run: str) -> ShownRun:
        """The data of a run."""
        with _refused():
            experiment, replay = self._replay(name, run)
            plan = _plan(replay)
            return ShownRun(
                name,
                experiment.document.scenario,
                replay.run.number,
                replay.run.name,
                experiment.document.clock,
                drawing(plan, _layout(experiment.directory, replay.run.number)),
                tuple(_changed(replay, plan)),
                replay.events,
                replay.flows,
                replay.more_flows,
                replay.end_ns,
                replay.levels_ns,
                replay.bins,
            )

    def links(self, name: str, run: str, level: str, piece: str) -> Piece:
        """The run's links in one piece of bins."""
        with _refused():
            return self._replay(name, run)[1].piece(_number(level, "level"), _number(piece, "piece"))

    def flows(self, name: str, run: str) -> FlowPiece:
        """The run's flows."""
        with _refused():
            return self._replay(name, run)[1].flow_bins()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        return (
            Endpoint("GET", "/api/replays/{name}", "runs of an experiment that can be shown again", self.runs),
            Endpoint("GET", "/api/replays/{name}/{run}", "the data of a run", self.about),
            Endpoint("GET", "/api/replays/{name}/{run}/flows", "its flows: cwnd, RTT, goodput over time", self.flows),
            Endpoint("GET", "/api/replays/{name}/{run}/links/{level}/{piece}", "its links over time", self.links),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """No routes but the endpoints."""
        return ()

    def _experiment(self, name: str) -> ExperimentResults:
        place = self._place / name
        if not NAME.fullmatch(name) or place.resolve() != self._place.resolve() / name:
            raise RefusedError(f'"{name[:80]}": write the name of an experiment, as ewan exp list has it')
        if not place.is_dir():
            raise RefusedError(f"{name}: there is no such experiment in {RESULTS}")
        return load.experiment_once(place)

    def _replay(self, name: str, run: str) -> tuple[ExperimentResults, Replay]:
        found, number = self._experiment(name), _number(run, "run")
        if number not in found.by_number:
            raise RefusedError(f"{name} has no run {number}: it has {len(found.runs)}")
        with self._lock:  # what one run was read for serves its next pieces
            if self._kept[0] is not found:
                self._kept = (found, {})
            replay = self._kept[1].get(number)
            if replay is None:
                self._kept = (found, {number: (replay := Replay(found.by_number[number]))})
        return found, replay


def _plan(replay: Replay) -> Plan:
    try:
        return plans.from_json(orjson.dumps(replay.plan))
    except ValueError as error:
        raise RefusedError(f"{replay.run.directory / PLAN}: {str(error).splitlines()[0]}") from None


def _layout(directory: Path, number: int) -> Mapping[str, tuple[int, int]]:
    """The places of the nodes of a run's lab that a person chose; empty where the scenario is missing or cannot be read
    any more."""
    try:
        found = source.of(directory)
        if found is None:
            return {}
        return found.scenario.runs(found.settings, found.scale, found.seeds)[number - 1].spec.description.layout
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return {}


def _changed(replay: Replay, plan: Plan) -> Iterator[ChangedLinks]:
    """The links that differ from before, at each moment at which some were changed."""
    made = [(at_ns, each) for at_ns, each in replay.made if each.change != Change()]
    now = {line.name: line for line in lines(plan)}
    for at_ns in sorted({at_ns for at_ns, _ in made})[:MOST_CHANGES]:
        past = [each for made_ns, each in made if made_ns <= at_ns]
        links = tuple(line for line in lines(change.plan_as_it_is(plan, past)) if line != now[line.name])
        now |= {line.name: line for line in links}
        yield ChangedLinks(at_ns, links)


def _number(text: str, what: str) -> int:
    if not NUMBER.fullmatch(text):
        raise RefusedError(f'{what} "{text[:40]}": write a whole number')
    return int(text)


@contextmanager
def _refused() -> Iterator[None]:
    """Turns an error in reading or finding data into a line for the user."""
    try:
        yield
    except (ValueError, KeyError) as error:
        raise RefusedError(str(error)) from None
