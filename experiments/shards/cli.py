"""`ewan run SCENARIO --shard I/N`, and the command `collect`.

In: the command line. Out: a shard's results in the store, with a line of their outcome; of all shards an
experiment, shown as `ewan run` shows one. Exit status 0 when all is there, 1 when something is missing, or a stop rule
wants further runs, 2 for what the user can put right.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import click

from ewan.experiments.engine.cli import (
    ExperimentOutput,
    every_option,
    label_options,
    labels_of,
    shown,
)
from ewan.experiments.engine.parts import Facts, Parts
from ewan.experiments.engine.request import ScenarioRequest, facts_of
from ewan.experiments.shards import collect, shard
from ewan.experiments.shards.share import Shard
from ewan.experiments.shards.study import RunOutcome, Study
from ewan.generator.scenario import Scenario, Stop
from ewan.labs.base import codec
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.context import Context
from ewan.labs.record.labels import Labels


class ShardOutput(codec.Struct):
    """The runs of a shard of a study."""

    study: str
    shard: str
    runs: tuple[RunOutcome, ...]


def run(context: Context, scenario: Scenario, parts: Parts, asked: ScenarioRequest, text: str, as_json: bool) -> int:
    """Executes one shard; the exit status. Runs of shards are in the virtual clock."""
    if context.runtime not in ("auto", "virtual"):
        raise Refused(f"--runtime {context.runtime}: shards are of the virtual clock: write --runtime virtual")
    try:
        part = Shard.parse(text)
    except ValueError as error:
        raise Refused(f'--shard "{text}": {error}') from None
    study = Study.of_scenario(scenario, asked.scale, asked.settings, asked.seeds)
    virtual = dataclasses.replace(context, runtime="virtual")
    facts, _ = described(study, {})
    status, done = shard.run(virtual, study, part, facts, parts, unverified=asked.unverified, fresh=asked.fresh)
    complete = [each for each in done if each.status == "complete"]
    if as_json:
        context.reporter.emit(ShardOutput(str(study.directory), str(part), tuple(done)))
        return status
    words = f"shard {part}: {len(complete)} of {len(done)} runs are in {context.store}"
    context.reporter.console.print(f"{words}; ewan exp collect {study.directory}", soft_wrap=True)
    return status


@click.command("collect")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@label_options
@every_option
@json_option(lambda: ExperimentOutput)
@guarded
@pass_context
def collect_command(
    context: Context,
    directory: Path,
    label: str | None,
    tags: tuple[str, ...],
    note: str | None,
    every: bool,
    as_json: bool,
) -> None:
    """Join the results of the shards of a study to one experiment with tables, report and archive.

    DIR is the directory that `ewan run SCENARIO --shard I/N` says. What is missing is named, and what is there is
    shown all the same. Where the scenario repeats runs until an interval is narrow enough, the runs of the next round
    are written there: run the same shards again, and collect again, until the exit status is 0.
    """
    study = Study.of_directory(directory)
    facts, stop = described(study, labels_of(label, tags, note))
    found = collect.collect(context, study, facts, Parts.default(), stop)
    shown(context, found.directory, as_json, every)
    tell = context.reporter.tell
    if found.missing:
        tell(f"{collect.missing_words(found.missing, study.records())}: run these shards again, and collect again")
    if found.wrong:
        tell(f"{len(found.wrong)} runs ended with an error of their own: experiment.json tells which")
    if found.stopped:
        tell(found.stopped)
    if found.further:
        number = len(study.rounds().ends) + 1
        tell(f"round {number} has {found.further} further runs: run the same shards again, and collect again")
    sys.exit(found.status or bool(found.further))


def described(study: Study, given: Labels) -> tuple[Facts, Stop | None]:
    """The facts that an experiment records about the study, and its stop rule; `given`: the experiment's labels."""
    stop = study.scenario.stop_at(study.scale) if study.seeds is None else None
    facts = facts_of(study.scenario, stop, study.scale, study.settings, study.seeds, "virtual", given)
    return facts, stop
