"""The command `hstts`: the High Speed Transport protocol Test Suite on a verified lab, in either clock.

In: applications, a topology, the poster's parameters, congestion controls. Out: an experiment's directory with its
report for each application, one table of all of them against the reference, and which directories were made.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ewan.experiments.engine import cli as running
from ewan.experiments.engine import engine, request, several, trust
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Parts
from ewan.experiments.engine.preparation import ReadyExperiment
from ewan.experiments.engine.several import Planned
from ewan.extras.suites import hstts, overview
from ewan.extras.suites.application import OURS
from ewan.extras.suites.applications import APPLICATIONS
from ewan.extras.suites.hstts import ApplicationScenario, SuiteRequest
from ewan.extras.suites.overview import Suite
from ewan.extras.suites.parameters import RANGES
from ewan.extras.suites.profiles import PROFILES
from ewan.generator import scenario as scenarios
from ewan.labs.base import reading
from ewan.labs.base.codec import Struct
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import Duration, UnitError
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import (
    Function,
    json_option,
    machines_option,
    pass_context,
    renamed_option,
    runtime_option,
    trust_option,
    unverified_option,
)
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.context import Context
from ewan.labs.record.labels import Labels
from ewan.labs.spec import DescriptionError

REPORT = "report.html"
CONGESTION_CONTROLS = "reno,cubic,bic,highspeed,scalable,htcp"
_LISTED = ", ".join(f"{app.word} {app.title}" for app in APPLICATIONS.values())
LONGEST_CONSTRAINT = Duration.parse("10s")


def parameter_options(command: Function) -> Function:
    """An option for each of the poster's parameters."""
    for each in reversed(RANGES):
        text = f"{each.symbol}: {each.meaning} [poster: {each.values}]"
        command = click.option(f"--{each.word.lower()}", metavar="VALUE", help=text)(command)
    return command


class SuiteExperiment(Struct):
    """The directory and the state of an application's experiment."""

    directory: str
    status: str


class SuiteOutput(Struct):
    """The experiments of a suite by application, and its metrics as multiples of those of a reference."""

    experiments: dict[str, SuiteExperiment]
    normalised_to: str
    rows: list[overview.OverviewRow]


@click.command("hstts")
@click.option("--app", default="all", show_default=True, metavar="NAMES", help=f"{_LISTED}, or all")
@click.option("--topo", default="dumbbell", show_default=True, metavar="TOPOLOGY|FILE", help="elsewhere all pairs send")
@parameter_options
@click.option(
    "--cc", default=CONGESTION_CONTROLS, show_default=True, metavar="NAMES", help="congestion controls to compare"
)
@click.option(
    "--normalise",
    default="reno",
    show_default=True,
    metavar="NAME",
    help="the reference by which the others are divided",
)
@click.option(
    "--generator", default=OURS, show_default=True, metavar="NAMES", help="what sends the load, as in scenarios"
)
@renamed_option(
    "--size",
    "profile",
    old="--profile",
    type=click.Choice(list(PROFILES)),
    default="quick",
    show_default=True,
    help="quick, or as in the paper",
)
@click.option("--seeds", type=click.IntRange(1, 1000), metavar="N", help="repetitions (default: by --size)")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="a size of the scenario, volume=1Gbit")
@click.option("--constraint", default="1s", show_default=True, metavar="TIME", help="WM: a response is late after this")
@runtime_option
@machines_option
@unverified_option
@renamed_option("--dry-run", "show", old="--show", is_flag=True, help="print the scenarios and run nothing")
@trust_option
@running.label_options
@running.every_option
@json_option(lambda: SuiteOutput)
@guarded
@pass_context
def hstts_command(
    context: Context,
    /,
    app: str,
    topo: str,
    cc: str,
    normalise: str,
    generator: str,
    profile: str,
    seeds: int | None,
    settings: tuple[str, ...],
    constraint: str,
    unverified: bool,
    show: bool,
    label: str | None,
    tags: tuple[str, ...],
    note: str | None,
    every: bool,
    as_json: bool,
    **given: str | None,
) -> None:
    """Compare congestion controls as the HSTTS poster does (Guillier and Vicat-Blanc Primet).

    Give any of C, C_a, K, M and C_g: the others follow (K = C/C_a, C_g = M·C_a/C), and a contradiction is refused.
    Several values with commas between them are a sweep, with its table and figures. Values that the poster does not
    have are run, with a note. docs/how-to/experiments/hstts.md says what each application does.

    \b
    ewan suite hstts --app BU --rtt 20ms --rate 1G --cg 1.0 --r 1.0 --runtime virtual
    ewan suite hstts --app BU --cg 0.5,0.8,1.0,1.5,2.0 --cc reno,bic,scalable --runtime virtual
    ewan suite hstts --app all --size quick --runtime virtual
    ewan suite hstts --app PA --generator ewan,openmpi --runtime virtual
    ewan suite hstts --app BU --rtt Mix --m 20 --cc cubic,bbr --dry-run
    """
    controls, added = hstts.congestion_controls(cc, normalise)
    words = {key.upper(): value for key, value in given.items() if value is not None}
    wanted = SuiteRequest(
        hstts.names(app), topo, words, profile, controls, normalise, seeds, (), hstts.generators(generator)
    )
    with reading.noted() as read:
        built = hstts.build(wanted, context.reporter.note)
    limit = _constraint(constraint)
    if show:
        click.echo("\n".join(each.text for each in built), nl=False)
        return
    if added:
        context.reporter.messages.print(f"note: {normalise} is run too, since results are divided by its own")
    for each in built:
        for note in each.parameters.notes:
            context.reporter.messages.print(f"note: {each.app}: {note}")
    swept = list(dict.fromkeys(name for each in built for name in each.swept))
    virtual = is_virtual(context)
    runtime = "virtual" if virtual else context.runtime
    called = running.labels_of(label, tags, note)
    sizes, machines = running.values_set(settings), context.machines
    planned = [_planned(each, built, sizes, runtime, called, machines) for each in built]
    for one in planned:
        trust.ask_for_scenario(context, one.runs, virtual=virtual, read=read)
    if not virtual:
        as_root(context)
    over = None if machines is None else context.multi_machine()
    experiments = several.prepared(planned, virtual, unverified, over)
    places, complete = _run(context, experiments, Parts.default(), as_json, every)
    if missing := [app for app in experiments if app not in places]:
        context.reporter.tell(f"not begun, and their directories removed: {', '.join(missing)}")
    conclude(context, Suite(places, controls, normalise, limit.ns, swept), as_json)
    sys.exit(0 if complete else 1)


def _planned(
    one: ApplicationScenario,
    all_of_them: Sequence[ApplicationScenario],
    settings: Mapping[str, str],
    runtime: str,
    called: Labels,
    machines: Path | None,
) -> Planned:
    """The plan of an application with those of the sizes set that it has; DescriptionError for one that no application
    has."""
    known = {each.app: scenarios.parse(each.text, each.file) for each in all_of_them}
    for key, value in settings.items():
        if all(key not in each.parameters for each in known.values()):
            has = ", ".join(name for name in known[one.app].parameters if name != "congestion")
            raise DescriptionError(f"--set {key}={value}: no application has that: {one.app} has {has}")
    scenario = known[one.app]
    own = {key: value for key, value in settings.items() if key in scenario.parameters}
    facts = request.facts_of(scenario, None, None, own, None, runtime, called, machines)
    return Planned(one.app, scenario.name, scenario.runs(own), facts)


def _run(
    context: Context, experiments: Mapping[str, ReadyExperiment], parts: Parts, as_json: bool, every: bool
) -> tuple[dict[str, Path], bool]:
    """One after the other: the directory of each application that was begun, and whether all are complete."""
    places: dict[str, Path] = {}

    def begins(app: str, experiment: Experiment) -> None:
        places[app] = experiment.directory
        length = engine.counted(len(experiment.runs), "run")
        context.reporter.messages.print(f"[bold]{experiment.document.title}[/]: {length}", soft_wrap=True, markup=True)

    def ended(_: str, experiment: Experiment) -> None:
        if not as_json:
            running.shown(context, experiment.directory, as_json=False, every=every)
            context.reporter.console.print()

    complete = several.run(context, experiments, parts, begins=begins, ended=ended)
    return places, complete


def conclude(context: Context, suite: Suite, as_json: bool) -> None:
    """The table of the suite, and the directory of each application that was begun."""
    rows = suite.rows()
    if as_json:
        result = {app: SuiteExperiment(str(place), overview.status(place)) for app, place in suite.experiments.items()}
        context.reporter.emit(SuiteOutput(result, suite.reference, rows))
        return
    if rows:
        title = f"HSTTS: multiples of {suite.reference}'s, with 95 % confidence intervals over the seeds"
        context.reporter.console.print(grid(title, suite.columns(), [suite.text(row) for row in rows], most=len(rows)))
    for app, place in suite.experiments.items():
        report = f"  report: {REPORT}" if (place / REPORT).exists() else ""
        context.reporter.console.print(
            f"{app}  {overview.status(place)}  directory: {place}{report}", soft_wrap=True, markup=False
        )


def _constraint(text: str) -> Duration:
    try:
        return Duration.parse(text, LONGEST_CONSTRAINT.ns)
    except UnitError as error:
        raise Refused(f'--constraint "{text}": {error}') from None
