"""The command `run`: a scenario from its description to its report; and the functions that other commands share.

In: the command line. Out: an experiment's directory; on standard error each stage with its time, on standard output the
table of metrics. Exit status 0 when all was measured, 1 when something is missing or was refused by the verification, 2
for what the user can put right."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click

from ewan.experiments import scenarios
from ewan.experiments.engine import engine, interruption, show, source, trust
from ewan.experiments.engine.executor import ThisMachine
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Parts
from ewan.experiments.engine.request import Elsewhere, ExperimentRequest, ScenarioRequest
from ewan.extra import installed
from ewan.generator.scenario import Scenario
from ewan.labs import rundir
from ewan.labs.base import codec
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import (
    Function,
    json_option,
    load_module_option,
    machines_option,
    pass_context,
    renamed_option,
    runtime_option,
    trust_option,
    unverified_option,
)
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.context import Context
from ewan.labs.record import disturbances, host_drops, labels, uncounted_traffic
from ewan.labs.record import summary as summaries
from ewan.labs.record.experiment import STAGES, StageName, State
from ewan.labs.record.labels import Labels

every_option = click.option("--all", "every", is_flag=True, help="print all metrics at all points, not only one screen")

again_option = renamed_option(
    "--again", "fresh", old="--fresh", is_flag=True, help="measure all runs, also those whose results are in the store"
)
cluster_option = click.option(
    "--cluster",
    "cluster_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="execute runs of the virtual clock on other machines by Dask (docs/how-to/experiments/executors.md)",
)


def label_options(command: Function) -> Function:
    """`label`, `tags` and `note` of an experiment."""
    command = click.option("--note", metavar="TEXT", help="a note that is kept with the experiment")(command)
    command = click.option(
        "--tag", "tags", metavar="TAG", multiple=True, help="a tag by which ewan exp list --tag TAG finds it"
    )(command)
    return click.option("--name", "label", metavar="TEXT", help="a name for the experiment")(command)


def labels_of(name: str | None, tags: Sequence[str], note: str | None) -> Labels:
    """The keys of the record; Refused for words that cannot be taken."""
    try:
        return labels.labels(name, tags, note)
    except ValueError as error:
        raise Refused(str(error)) from None


class ExperimentOutput(codec.Struct):
    """The results of an experiment: its directory, its state and its summary.json."""

    directory: str
    status: State
    summary: summaries.Summary


def _output() -> object:
    from ewan.experiments.shards.cli import ShardOutput

    return ExperimentOutput, ShardOutput


@click.command("run")
@click.argument("name", metavar="SCENARIO|NAME", required=False)
@renamed_option(
    "--size", "scale", old="--scale", metavar="NAME", help="quick, full, or another size that the scenario has"
)
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help='a parameter; several values: "cc=reno,bic"'
)
@click.option("--seeds", metavar="N", type=click.IntRange(1), help="how many runs of each point")
@runtime_option
@machines_option
@unverified_option
@renamed_option(
    "--dry-run",
    "only_shown",
    old="--show",
    is_flag=True,
    help="print the scenario and run nothing; for an XML file of NXE, the scenario that it becomes",
)
@cluster_option
@again_option
@click.option(
    "--shard", metavar="I/N", help="execute part I of N equal parts, for job arrays; ewan exp collect joins them"
)
@click.option("--resume", "resumed", metavar="DIR", type=click.Path(path_type=Path), hidden=True)
@click.option("--from", "start", type=click.Choice(list(STAGES)), hidden=True)
@trust_option
@load_module_option
@label_options
@every_option
@json_option(_output)
@guarded
@pass_context
def run_command(
    context: Context,
    name: str | None,
    scale: str | None,
    settings: tuple[str, ...],
    seeds: int | None,
    unverified: bool,
    cluster_file: Path | None,
    fresh: bool,
    shard: str | None,
    only_shown: bool,
    resumed: Path | None,
    start: StageName | None,
    label: str | None,
    tags: tuple[str, ...],
    note: str | None,
    every: bool,
    as_json: bool,
) -> None:
    """Run a scenario: every point of its parameters, from the lab to the report.

    SCENARIO is a file; NAME stands for NAME.scenario.yaml in the current directory, else in labs/library, else for
    NAME.xml there. A file that ends in .xml is an experiment of NXE (docs/how-to/experiments/nxe.md).

    \b
    ewan run parallel-streams --size quick --runtime virtual
    ewan run my.scenario.yaml --set streams=1,2,5 --seeds 5
    ewan run my.scenario.yaml --machines machines.yaml
    ewan run my.scenario.yaml --shard 3/100
    """
    parts = Parts.default()
    context, cluster = workers_of(context, cluster_file)
    if resumed is not None:
        if name is not None or scale or settings or seeds or unverified or shard or only_shown or label or tags or note:
            raise Refused("--resume goes on with an experiment as it was begun: leave the other words out")
        click.echo("ewan: `ewan run --resume` is now `ewan exp resume`; the option works until version 0.4", err=True)
        resume(context, resumed, start, as_json, every, fresh, cluster)
    if start is not None:
        raise Refused("--from repeats a stage of an experiment: write ewan exp resume DIR --from STAGE")
    if name is None:
        raise Refused("which scenario? write its file, or a name of labs/library: ewan run parallel-streams")
    words = values_set(settings)
    scenario = scenario_of(context, name)
    if context.runtime == "auto" and scenario.document.runtime is not None:
        context = replace(context, runtime=scenario.document.runtime)
    if only_shown:
        _ = scenario.runs(words, scale, seeds)[0]
        click.echo(scenario.text, nl=False)
        return
    trust.ask_for_scenario(context, scenario.runs(words, scale, seeds), virtual=is_virtual(context))
    if shard is not None and (label or tags or note or every):
        raise Refused("--shard leaves results for ewan exp collect: give that --name, --tag, --note and --all")
    if shard is not None and cluster is not None:
        raise Refused("--shard is for schedulers that start it, --cluster starts workers itself: leave one of them out")
    asked = ScenarioRequest(scale, words, seeds, unverified, labels_of(label, tags, note), fresh, cluster)
    if shard is not None:
        from ewan.experiments.shards import cli as shards

        sys.exit(shards.run(context, scenario, parts, asked, shard, as_json))
    sys.exit(experiment(context, scenario, parts, asked, as_json, every))


@click.command("resume")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--from", "start", type=click.Choice(list(STAGES)), help="repeat this stage and all later ones")
@cluster_option
@again_option
@machines_option
@load_module_option
@every_option
@json_option(lambda: ExperimentOutput)
@guarded
@pass_context
def resume_command(
    context: Context,
    directory: Path,
    start: StageName | None,
    cluster_file: Path | None,
    fresh: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Go on with an experiment that has not ended, or repeat it from one of its stages on.

    \b
    ewan exp resume results/20261121T120000Z-parallel-streams
    ewan exp resume results/20261121T120000Z-parallel-streams --from analysis
    """
    context, cluster = workers_of(context, cluster_file)
    resume(context, directory, start, as_json, every, fresh, cluster)


def resume(
    context: Context,
    directory: Path,
    start: StageName | None,
    as_json: bool,
    every: bool,
    fresh: bool,
    cluster: Elsewhere | None,
) -> NoReturn:
    """Goes on with an experiment after asking for trust where it comes from elsewhere; ends with its exit status."""
    if directory.exists():
        trust.ask_for_experiment(context, directory, Experiment.load(directory), resumed=True)
    sys.exit(go_on(context, directory, start, Parts.default(), as_json, every, fresh, cluster))


def scenario_of(context: Context, name: str) -> Scenario:
    """The scenario that is meant; notes on its file are printed."""
    found, notes = scenarios.load(name)
    for note in notes:
        context.reporter.note(note)
    return found


def experiment(
    context: Context, scenario: Scenario, parts: Parts, asked: ScenarioRequest, as_json: bool, every: bool = False
) -> int:
    """Run a scenario in a new directory of results/, print its results, and return the exit status."""
    virtual = is_virtual(context)
    run = ExperimentRequest(context, scenario, parts, asked, virtual)
    if not virtual:
        as_root(context)
    directory = rundir.make(scenario.name)
    status = interruption.status_of(context, directory, lambda: run.execute(directory))
    shown(context, directory, as_json, every)
    return status


def go_on(
    context: Context,
    directory: Path,
    start: StageName | None,
    parts: Parts,
    as_json: bool,
    every: bool = False,
    fresh: bool = False,
    cluster: Elsewhere | None = None,
) -> int:
    """Goes on with an experiment; the exit status."""
    loaded = Experiment.load(directory)
    if cluster is not None and not loaded.virtual:
        raise Refused(f"--cluster executes runs of the virtual clock, and {directory} is of the live one: leave it out")
    if not loaded.virtual:
        as_root(context)
    stored = source.of(directory)
    if context.machines is None and stored is not None and stored.machines is not None:
        context = replace(context, machines=stored.machines)
    repeated = loaded.document.rerun_of is not None
    stop = None
    if stored and not repeated and stored.seeds is None:
        stop = stored.scenario.stop_at(stored.scale)

    repeat = None
    if stored and stop:
        repeat = stored.scenario.runs(stored.settings, stored.scale, stored.seeds).of

    def work() -> int:
        with cluster or contextlib.nullcontext(ThisMachine(context)) as executor:
            return engine.resume(
                directory,
                parts=parts,
                context=context,
                start=start,
                stop=stop,
                repeat=repeat,
                fresh=fresh,
                executor=executor,
            )

    status = interruption.status_of(context, directory, work)
    shown(context, directory, as_json, every)
    return status


def workers_of(context: Context, file: Path | None) -> tuple[Context, Elsewhere | None]:
    """The executor of --cluster and the context in which it works, that of the virtual clock; None without the
    option."""
    if file is None:
        return context, None
    if context.runtime not in ("auto", "virtual"):
        raise Refused(f"--cluster executes runs of the virtual clock: leave --runtime {context.runtime} out")
    context = replace(context, runtime="virtual")
    return context, elsewhere(context, file)


def elsewhere(context: Context, file: Path) -> Elsewhere:
    """The executor that a file for --cluster describes; Refused where no extra has one."""
    executors = list(installed().executors.values())
    if not executors:
        raise Refused("--cluster needs an extra that executes runs on other machines, and none is installed")
    found: Elsewhere = executors[0]()(context, file)
    return found


def values_set(settings: Sequence[str]) -> dict[str, str]:
    """The values of `--set KEY=VALUE`, by key; Refused for other text."""
    result = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise Refused(f'--set "{text}": write KEY=VALUE, like streams=5 or "streams=1,2,5"')
        result[key.strip()] = value.strip()
    return result


def shown(context: Context, directory: Path, as_json: bool, every: bool = False) -> None:
    """Prints the results: a screen of them, or `every` metric, and the path of the rest."""
    loaded = Experiment.load(directory)
    if not (directory / summaries.FILE).exists():
        return
    summary = summaries.read(directory)
    if line := show.without_values(summary, loaded.document.metrics):
        context.reporter.warn(line)
    if as_json:
        context.reporter.emit(ExperimentOutput(str(directory), loaded.document.status, summary))
        return
    title = loaded.document.title or loaded.name
    if loaded.document.in_failed_labs:
        title += " (in labs that did not pass their verification)"
    width = context.reporter.console.width
    for table in show.points(summary, title, loaded.document.metrics, width, every):
        context.reporter.console.print(table)
    if any(point.beyond for point in summary.points):
        line = f"{show.BEYOND} more than the links carry: counted when delivered in order (see arrived goodput)"
        context.reporter.console.print(line, soft_wrap=True)
    for line in uncounted_traffic.of_runs(summary.runs):
        context.reporter.console.print(line, soft_wrap=True, markup=False)
    if (compared := show.comparisons(summary)) is not None:
        context.reporter.console.print()
        context.reporter.console.print(compared)
    if (papers := show.beside(summary)) is not None:
        context.reporter.console.print()
        context.reporter.console.print(papers)
    if dropped := host_drops.of_runs(summary.runs):
        context.reporter.console.print("\n" + "\n".join(dropped), soft_wrap=True, markup=False)
    if line := disturbances.in_all(summary.disturbed):
        context.reporter.console.print(f"\n{line}", soft_wrap=True)
    if picture := show.first_figure(loaded, directory, summary, width):
        context.reporter.console.print(f"\n{picture}", soft_wrap=True, markup=False, highlight=False)
    line = f"\n{loaded.document.status}  report: {directory / 'report.html'} (open it in a browser)"
    context.reporter.console.print(line, soft_wrap=True, markup=False)
