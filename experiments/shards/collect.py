"""An experiment from the results of shards: tables, report and archive of the runs that are there.

In: a study's directory and the store. Out: an experiment in results/ by the engine's own stages, of which execution
takes from the store and executes nothing; the missing runs and their shards; where the scenario has a stop rule, the
runs of the next round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ewan.experiments.engine import engine, interruption, preparation, stop_rule
from ewan.experiments.engine.executor import NoExecutor
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Facts, Parts
from ewan.experiments.engine.unit import Versions
from ewan.experiments.shards import share
from ewan.experiments.shards.study import AS_WHO_MAY, Record, Study
from ewan.generator.scenario import Stop
from ewan.labs import rundir
from ewan.labs.context import Context
from ewan.labs.record import summary as summaries
from ewan.labs.runtime.base import LabError

MOST_NAMED = 12
"""Shards of which runs are missing."""


@dataclass(slots=True)
class Collection:
    """`missing`: numbers of runs that no shard has executed; `wrong`: those that ended with an error of their own.
    `further`: how many runs the stop rule wants beside; `stopped`: in words how far it is."""

    directory: Path
    status: int
    missing: list[int] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    further: int = 0
    stopped: str = ""


def collect(context: Context, study: Study, facts: Facts, parts: Parts, stop: Stop | None) -> Collection:
    """Makes the experiment; LabError where shards do not belong together."""
    if context.store is None:
        raise LabError("what shards leave is in the store: leave EWAN_STORE=off out, or name its directory")
    records = study.records()
    if not records:
        raise LabError(f"{study.directory}: no shard has left a record yet: ewan run SCENARIO --shard 1/N makes one")
    versions = agreed(context, study, records)
    unverified = any(record.unverified for record in records)
    wrong = {
        done.number: f"{done.status} in shard {record.shard} on {record.machine}: {done.error}"
        for record in records
        for done in record.runs
        if done.error
    }
    directory = rundir.make(study.scenario.name)

    def work() -> int:
        prepared = preparation.prepare(
            study.jobs(), facts, virtual=True, directory=directory, unverified=unverified, executes=False
        )
        for entry in prepared.experiment.runs:
            entry.error = wrong.get(entry.number, "no shard has executed it")
        return engine.run(prepared, parts=parts, context=context, executor=NoExecutor(versions))

    again = f"ewan exp collect {study.directory} does it again"
    result = Collection(directory, interruption.status_of(context, directory, work, again=again))
    experiment = Experiment.load(directory)
    for entry in experiment.wanting():
        (result.wrong if entry.number in wrong else result.missing).append(entry.number)
    if stop is not None and not result.missing:
        next_round(study, experiment, stop, parts, result)
    return result


def agreed(context: Context, study: Study, records: Sequence[Record]) -> Versions:
    """The versions that executed all shards; LabError where they differ."""
    last = records[-1]
    for record in records:
        for what, one, other in (("kernel", record.kernel, last.kernel), ("node binary", record.binary, last.binary)):
            if one != other:
                raise LabError(
                    f"{study.directory}: shards {record.shard} and {last.shard} were executed with different versions "
                    f"of the {what} ({one[:12]} on {record.machine}, {other[:12]} on {last.machine}): run one of them "
                    "again with the other's"
                )
    return Versions(last.kernel, last.binary)


def next_round(study: Study, experiment: Experiment, stop: Stop, parts: Parts, result: Collection) -> None:
    """Writes the further runs that the stop rule wants; their number, and how far it is, into the result."""
    summary = summaries.read(experiment.directory)
    values = stop_rule.values(summary, stop.metric)
    if not any(values.values()):
        raise LabError(f'stop: no run has a "{stop.metric}": name a metric that its flows have')
    result.stopped = stop_rule.words(stop, values, parts.estimate)
    seeds: dict[stop_rule.Point, list[int]] = {}
    parameters: dict[stop_rule.Point, dict[str, str | int]] = {}
    for entry in experiment.runs:
        point = stop_rule.point_of(entry.parameters)
        parameters.setdefault(point, entry.parameters)
        seeds.setdefault(point, []).append(entry.seed)
    runs = {point: len(each) for point, each in seeds.items()}
    further = [
        (parameters[point], max(seeds[point]) + 1 + more)
        for point, number in share.wanted(stop, values, runs, parts.estimate).items()
        for more in range(number)
    ]
    if further:
        with rundir.kept(study.directory, AS_WHO_MAY):
            study.add_round(further)
        result.further = len(further)


def missing_words(missing: Sequence[int], records: Sequence[Record]) -> str:
    """The shards that have missing runs, in one line."""
    counts = {share.Shard.parse(record.shard).count for record in records}
    if len(counts) != 1:
        return f"{len(missing)} runs are missing, the first is run {missing[0]}"
    (count,) = counts
    owners = sorted({share.owner(number, count) for number in missing})
    named = ", ".join(str(each) for each in owners[:MOST_NAMED])
    more = f" and {len(owners) - MOST_NAMED} more" if len(owners) > MOST_NAMED else ""
    return f"{len(missing)} runs are missing, of the shards {named}{more}"
