"""Several experiments of one command: all are checked whole before the first begins, and run one after the other.

In: scenarios' runs with their facts, by name. Out: experiments that can begin, and the outcome of each. Those that
never began leave nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ewan.experiments.engine import engine, forecast, preparation, reservation
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.interruption import status_of
from ewan.experiments.engine.parts import Facts, Parts, Wall
from ewan.experiments.engine.preparation import ReadyExperiment
from ewan.generator.scenario import Runs
from ewan.labs import rundir
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Incomplete
from ewan.labs.context import Context
from ewan.labs.runtime import cpu, memory
from ewan.labs.runtime.multi_machine import MultiMachineRuntime


@dataclass(frozen=True, slots=True)
class Planned:
    """An experiment that has no directory yet; `folder` is the first part of its directory's name."""

    name: str
    folder: str
    runs: Runs
    facts: Facts


def prepared(
    planned: Sequence[Planned], virtual: bool, unverified: bool, over: MultiMachineRuntime | None = None
) -> dict[str, ReadyExperiment]:
    """Each experiment by its name, checked whole and not begun; `over`: labs stretch over its machines. Where one of
    them cannot begin, none is left."""
    result: dict[str, ReadyExperiment] = {}
    try:
        for each in planned:
            jobs = preparation.in_time(each.runs, virtual, over)
            directory = rundir.make(each.folder)
            result[each.name] = preparation.prepare(
                jobs, each.facts, virtual=virtual, directory=directory, unverified=unverified, over=over
            )
    except BaseException:
        for begun in result.values():
            begun.drop()
        raise
    return result


def run(
    context: Context,
    experiments: Mapping[str, ReadyExperiment],
    parts: Parts,
    *,
    ended: Callable[[str, Experiment], None],
    begins: Callable[[str, Experiment], None] = lambda name, experiment: None,
) -> bool:
    """One after the other; whether all of them are complete. `ended` is not called of one that could not go on.

    One that cannot go on ends them all: what has not begun is dropped.
    """
    complete = True
    waiting = dict(experiments)
    try:
        for name, each in experiments.items():
            directory = each.experiment.directory
            begins(name, each.experiment)
            del waiting[name]
            try:
                work = functools.partial(engine.run, each, parts=parts, context=context)
                status = status_of(context, directory, work)
            except Incomplete as error:
                error.show()
                return False
            complete &= not status
            ended(name, Experiment.load(directory))
    finally:
        for each in waiting.values():
            each.drop()
    return complete


def needed(runs: Runs, wall: Wall) -> str:
    """The needs of runs of the virtual clock, in one line: their number, their time in both clocks, and the memory that
    the largest of them may take."""
    needs, entries = reservation.RunNeeds(), []
    for job in preparation.jobs(runs, True):
        needs.add(job, True)
        entries.append(job.entry)
    lasting = about(sum(entry.expected_ns for entry in entries), "time", 3)
    text = f"{engine.counted(len(entries), 'run')}, {lasting} of simulated time"
    text += f"; {forecast.Forecast(entries, wall).words(entries, len(cpu.free()))}"
    if needs.largest is None:
        return text
    most, free = needs.largest[1].bytes, memory.free_memory_bytes()
    short = f", of which there are {about(free, 'size', 2)} here: it is refused" if most > free else ""
    return f"{text}; at most {about(most, 'size', 2)} of memory for a run{short}"
