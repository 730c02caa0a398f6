"""Preparation of an experiment before its stages: all of its runs are made, checked and written, or none is.

In: runs of a scenario, or stored ones, and a directory. Out: an experiment in that directory that can begin."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.experiments.engine import reservation, source, stop_rule
from ewan.experiments.engine.experiment import SOURCES, Experiment, Job, Make, family
from ewan.experiments.engine.parts import Facts
from ewan.generator.scenario import Runs, ScenarioRun, ScheduledRun
from ewan.labs import host, rundir
from ewan.labs import plan as plans
from ewan.labs.base import writing
from ewan.labs.base.codec import replace
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.plan import Plan
from ewan.labs.record.demand import Demand
from ewan.labs.record.experiment import Clock, Entry
from ewan.labs.runtime import kernel, node_overrides
from ewan.labs.runtime.multi_machine import MultiMachineRuntime

MOST_AT_ONCE = 1000
"""Runs of an experiment all of which are made, checked and written before the first one starts: seconds. Of more runs
it is the first one of each point; the others are written as each is about to start."""
MOST_COUNTED = 200
"""Points whose demand is counted, each of which takes up to a tenth of a second."""


def jobs(
    runs: Runs, virtual: bool, numbers: Sequence[int] | None = None, over: MultiMachineRuntime | None = None
) -> Iterator[Job]:
    """A scenario's runs, or those of these numbers, as they are executed in a clock, each made and checked when it is
    asked for; `over`: live labs stretch over its machines.

    DescriptionError and LabError for the first that cannot be.
    """
    counted: dict[stop_rule.Point, Demand] = {}
    for run, plan, schedule in runs.scheduled(facts_of(virtual, over), clock(virtual), numbers):
        point = stop_rule.point_of(run.parameters)
        # Runs of a point differ only by their seeds. Of very many points the first ones stand for all.
        if virtual and point not in counted and len(counted) < MOST_COUNTED:
            counted[point] = schedule.demand()
        yield job(run, plan, schedule, counted.get(point))


@dataclass(frozen=True, slots=True)
class PointRuns:
    """The other runs of a point, which share all but the seed with `like`, its first one; `make` makes each."""

    like: Job
    entries: tuple[Entry, ...]
    make: Make


def in_time(runs: Runs, virtual: bool, over: MultiMachineRuntime | None = None) -> Iterator[Job | PointRuns]:
    """The same as `jobs`. Where there are many runs of the virtual clock, those whose lab and steps have been checked
    with the first one of their point are left to be made later."""
    if not virtual or len(runs) <= MOST_AT_ONCE or not runs.alike:
        yield from jobs(runs, virtual, over=over)
        return
    make = maker(runs)
    for first in jobs(runs, virtual, runs.firsts):
        yield first
        yield PointRuns(first, tuple(_later(first.entry, *each) for each in runs.others(first.entry.number)), make)


def _later(first: Entry, number: int, name: str, seed: int) -> Entry:
    """A run that is not written yet, at the point of its first one."""
    return replace(first, number=number, name=name, seed=seed, plan_sha256="", directory=_directory(number))


def maker(runs: Runs) -> Make:
    """Makes runs of the virtual clock as they are about to start; DescriptionError and LabError as `jobs`."""

    def make(entry: Entry) -> Job:
        return repeated(runs.of(runs.points[(entry.number - 1) // runs.seeds], entry.number, entry.seed), True)

    return make


def made_again(directory: Path) -> Make:
    """The same of the scenario that an experiment keeps; LabError where it keeps none that can be read."""
    found = source.kept(directory, ", of which its runs are made")
    return maker(found.scenario.runs(found.settings, found.scale, found.seeds))


def _directory(number: int) -> str:
    return f"runs/{number:03}"


def job(run: ScenarioRun, plan: Plan, schedule: ScheduledRun, demand: Demand | None = None) -> Job:
    """A run with its plan and its schedule, ready to execute: in the virtual clock its program has the nodes' commands
    too, as the lab exists only for the program."""
    virtual = schedule.document.clock == "virtual"
    plan = kernel.chosen(plan)
    program = node_overrides.prepared(plan, schedule.program) if virtual else schedule.program
    text = plans.to_json(plan)
    entry = Entry(
        number=run.number,
        name=run.name,
        parameters=dict(run.parameters),
        seed=run.seed,
        plan_sha256=hashlib.sha256(text).hexdigest(),
        family=family(text),
        directory=_directory(run.number),
        expected_ns=schedule.program.expected_ns or schedule.program.longest_ns,
        status="waiting",
        error=None,
        certificate=None,
        verified=None,
        demand=demand,
    )
    return Job(entry, plan, program, schedule.document)


def repeated(
    run: ScenarioRun, virtual: bool, demand: Demand | None = None, over: MultiMachineRuntime | None = None
) -> Job:
    """A run beside those of a scenario, at one of its points with another seed, as it is executed."""
    schedule = run.schedule(compile_spec(run.spec, facts_of(virtual, over)), clock(virtual))
    return job(run, schedule.plan, schedule, demand)


def facts_of(virtual: bool, over: MultiMachineRuntime | None = None) -> HostFacts:
    """The facts about the machine that executes the runs, or about the machines of `over`."""
    if over is not None:
        return over.host_facts()
    return host.virtual_facts() if virtual else host.facts()


def clock(virtual: bool) -> Clock:
    """The clock of the runs."""
    return "virtual" if virtual else "live"


@dataclass(frozen=True, slots=True)
class ReadyExperiment:
    """An experiment that can begin: its runs are checked and in its directory, and this machine fulfils their needs.

    `workers`: the number of runs that may be at work at once; `took_ns`: the wall time until here."""

    experiment: Experiment
    workers: int
    took_ns: int
    shorter: tuple[str, ...] = ()
    """Traces that are shorter than a run, with their state after their end."""

    @property
    def expected_ns(self) -> int:
        """The time that all runs will take by their own clock, in ns."""
        return sum(entry.expected_ns for entry in self.experiment.runs)

    def drop(self) -> None:
        """Takes an experiment away that is not to begin."""
        shutil.rmtree(self.experiment.directory, ignore_errors=True)


def _show_sources(experiment: Experiment, sources: Mapping[str, Mapping[str, bytes]]) -> None:
    """Writes the sources of modules and controllers for readers: runs execute those of their programs."""
    for folder, files in sources.items():
        for name, text in files.items():
            path = experiment.directory / SOURCES / folder / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                writing.write(path, text)
                experiment.record(path)


def prepare(
    jobs: Iterable[Job | PointRuns],
    facts: Facts,
    *,
    virtual: bool,
    directory: Path,
    unverified: bool = False,
    executes: bool = True,
    over: MultiMachineRuntime | None = None,
) -> ReadyExperiment:
    """Writes all runs into an empty directory, one after the other, so that none of them stays in memory; `over`: labs
    stretch over its machines. Without `executes`, this machine needs only room for them.

    LabError or DescriptionError where the experiment cannot begin; its directory is gone then."""
    begun = time.monotonic_ns()
    try:
        with rundir.kept(directory):
            for name, content in facts.files.items():
                writing.write(directory / name, content)
            experiment = Experiment.create(directory, facts.origin, clock(virtual), unverified=unverified)
            for name in facts.files:
                experiment.record(directory / name)
            wanted = reservation.RunNeeds(over)
            for each in jobs:
                if isinstance(each, PointRuns):
                    wanted.add(each.like, virtual, len(each.entries))
                    experiment.runs.extend(each.entries)
                    experiment.make = each.make
                else:
                    wanted.add(each, virtual)
                    experiment.add(each)
            _show_sources(experiment, wanted.sources)
            workers = reservation.check(wanted, virtual, directory, executes)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return ReadyExperiment(experiment, workers, time.monotonic_ns() - begun, tuple(wanted.shorter))
