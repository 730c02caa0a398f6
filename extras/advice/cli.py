"""The command `advise`: which protocol suits a path that was characterised.

In: a document of `ewan measure path`, an objective. Out: the lab that was derived from it; an experiment on that lab in
the virtual clock; a table of protocols, the best first. Exit status 0 when all was run, 1 when a run did not complete,
2 for what the user can put right.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, cast

import click

from ewan.experiments.engine import cli as running
from ewan.experiments.engine import request, several
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Parts
from ewan.experiments.engine.several import Planned
from ewan.extras.advice import objectives, ranking
from ewan.extras.advice.derived_lab import derive
from ewan.extras.advice.objectives import OBJECTIVES, AdviceRequest, Word
from ewan.extras.advice.ranking import RankedProtocol
from ewan.generator import congestion
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import Scenario
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.reading import read_bytes
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import Duration, Size, UnitError, parse_volume
from ewan.labs.base.writing import write_named
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, renamed_option
from ewan.labs.context import Context
from ewan.labs.record import summary as summaries
from ewan.labs.record.characterisation import Characterisation, from_json

LONGEST = Duration.parse("10s").ns * 360
MOST_FLOWS = 1000


class AdvicePlan(Struct):
    """The lab and the experiment that answer, as `--json` has them. `costs`: of the experiment, in words."""

    objective: str
    metric: str
    lab: str
    scenario: str
    assumed: tuple[str, ...]
    costs: str = ""


class AdviceOutput(AdvicePlan, kw_only=True):
    """The ranking of the protocols, and the advice that follows from it, in words."""

    directory: str
    ranking: tuple[ranking.RankedProtocol, ...]
    advice: str


@click.command("advise")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--objective",
    type=click.Choice(list(OBJECTIVES)),
    required=True,
    help="completion: files are there soon; fairness: equal shares; smooth: packets wait little",
)
@click.option("--volume", metavar="SIZE", help="completion: what each flow sends (default: 20 s of its share)")
@click.option("--for", "length", metavar="TIME", help="fairness, smooth: how long flows send (default: 20s)")
@click.option(
    "--flows", default=4, show_default=True, type=click.IntRange(1, MOST_FLOWS), help="parallel flows of each pair"
)
@renamed_option(
    "--cc",
    "protocols",
    old="--protocols",
    default=",".join(objectives.PROTOCOLS),
    show_default=True,
    metavar="NAMES",
    help="congestion controls to compare",
)
@click.option(
    "--seeds",
    default=3,
    show_default=True,
    type=click.IntRange(1, 1000),
    metavar="N",
    help="runs of each congestion control",
)
@renamed_option(
    "--output",
    "-o",
    "lab_file",
    old="--lab",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="write the derived lab to this file",
)
@renamed_option(
    "--dry-run",
    "only_plan",
    old="--plan",
    is_flag=True,
    help="print the lab, the scenario and their cost, and run nothing",
)
@running.label_options
@json_option(lambda: (AdvicePlan, AdviceOutput))
@guarded
@pass_context
def advise_command(
    context: Context,
    /,
    file: Path,
    objective: str,
    volume: str | None,
    length: str | None,
    flows: int,
    protocols: str,
    seeds: int,
    lab_file: Path | None,
    only_plan: bool,
    label: str | None,
    tags: tuple[str, ...],
    note: str | None,
    as_json: bool,
) -> None:
    """Rank congestion controls for a measured path by running them on a lab that is derived from it.

    FILE is what ewan measure path -o FILE wrote. The lab is printed as a description: change it, and run the scenario
    of the experiment again with ewan run. All runs are in the virtual clock.

    \b
    ewan suite advise path.json --objective completion --volume 100MB
    ewan suite advise path.json --objective smooth --cc reno,cubic,bbr --output derived.lab.yaml
    ewan suite advise path.json --objective fairness --dry-run
    """
    found = characterisation(file)
    wanted = _wanted(found, cast(Word, objective), volume, length, flows, protocols, seeds)
    try:
        derived = derive(found, objectives.pairs(found, flows))
    except ValueError as error:
        raise Refused(f"{file}: {error}") from None
    text = objectives.scenario(found, derived, wanted)
    scenario = scenarios.parse(text, Path(f"advice-{objective}.scenario.yaml"))
    if lab_file is not None:
        try:
            write_named(lab_file, derived.text.encode())
        except OSError as error:
            raise Refused(f"--output {lab_file}: {error.strerror}") from None
    context = dataclasses.replace(context, runtime="virtual")
    parts = Parts.default()
    metric = OBJECTIVES[wanted.objective].metric
    plan = AdvicePlan(objective, metric, derived.text, text, derived.assumed)
    if only_plan:
        costs = several.needed(scenario.runs(), parts.wall(context))
        if as_json:
            context.reporter.emit(codec.replace(plan, costs=costs))
            return
        click.echo(f"{derived.text}---\n{text}# {costs}")
        return
    for line in derived.assumed:
        context.reporter.warn(line)
    if not as_json:
        click.echo(derived.text)
    called = running.labels_of(label, tags, note)
    facts = request.facts_of(scenario, None, None, {}, None, "virtual", called)
    context.reporter.tell(several.needed(scenario.runs(), parts.wall(context)))
    directory, complete = _run(context, scenario, facts)
    summary = directory / "summary.json"
    if not summary.exists():
        raise Refused(f"{directory}: no run was measured: ewan exp resume {directory} goes on")
    from ewan.analysis import comparisons  # it takes a second to import

    places = ranking.ranked(summaries.read(directory), metric, comparisons.of)
    if as_json:
        context.reporter.emit(
            AdviceOutput(
                objective=plan.objective,
                metric=plan.metric,
                lab=plan.lab,
                scenario=plan.scenario,
                assumed=plan.assumed,
                directory=str(directory),
                ranking=tuple(places),
                advice=ranking.verdict(places, metric),
            )
        )
    else:
        show(context, places, wanted.objective, directory)
    sys.exit(0 if complete else 1)


def characterisation(file: Path) -> Characterisation:
    """Read a characterisation from a file; Refused for another file."""
    try:
        return from_json(read_bytes(file))
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise Refused(f"{file}: {error}") from None


def _wanted(
    found: Characterisation,
    objective: Word,
    volume: str | None,
    length: str | None,
    flows: int,
    protocols: str,
    seeds: int,
) -> AdviceRequest:
    names = tuple(objectives.protocols_of(protocols))
    if not names:
        raise Refused("--cc: write the names of congestion controls, reno,cubic,bbr")
    congestion.refuse(names, True)
    files = objective == "completion"
    if files and length is not None:
        raise Refused(f"--for {length}: files of --objective completion take as long as they take: write --volume")
    if not files and volume is not None:
        raise Refused(f"--volume {volume}: flows of --objective {objective} send for a time: write --for")
    try:
        size = objectives.usual_volume_bytes(found, flows) if volume is None else parse_volume(volume).bytes
    except UnitError as error:
        raise Refused(f'--volume "{volume}": {error}') from None
    try:
        lasting = objectives.usual_length_ns(found) if length is None else Duration.parse(length, LONGEST).ns
    except UnitError as error:
        raise Refused(f'--for "{length}": {error}') from None
    if not size or not lasting:
        raise Refused(f"there is nothing to send: write {f'--volume {Size(10**8)}' if files else '--for 20s'}")
    return AdviceRequest(objective, names, flows, seeds, size, lasting)


def _run(context: Context, scenario: Scenario, facts: Any) -> tuple[Path, bool]:
    """The experiment's directory, and whether all of it is complete."""
    places: list[Path] = []

    def begins(_: str, experiment: Experiment) -> None:
        places.append(experiment.directory)

    planned = [Planned("advice", scenario.name, scenario.runs(), facts)]
    parts = Parts.default()
    experiments = several.prepared(planned, True, False)
    complete = several.run(context, experiments, parts, begins=begins, ended=lambda name, experiment: None)
    return places[0], complete


def show(context: Context, places: list[RankedProtocol], objective: Word, directory: Path) -> None:
    """Prints the table, and the advice in one line."""
    wanted = OBJECTIVES[objective]
    shown = [name for name in (wanted.metric, *wanted.beside) if any(name in place.metrics for place in places)]
    best = places[0].protocol
    rows = [ranking.row(place, shown, best) for place in places]
    columns = ["rank", "protocol", *shown, "against the best"]
    title = f"Protocols by {wanted.metric}: {wanted.title}"
    context.reporter.console.print(grid(title, columns, rows, most=len(rows), keys=2))
    context.reporter.console.print(ranking.verdict(places, wanted.metric), soft_wrap=True, markup=False)
    context.reporter.console.print(f"report: {directory / 'report.html'}", soft_wrap=True, markup=False)
