"""The command `transfers`: requests for bulk transfers, planned by the services of the eWAN paper, and run.

In: a file of requests. Out: a table of each plan and of f1 and f2 beside the best that is possible; with --run an
experiment of each plan, and what was promised beside what was seen. Exit status 0 when all was planned (and run), 1
when a run did not complete, 2 for what the user can put right. Requests that are refused are a result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

from ewan.experiments.engine import cli as running
from ewan.experiments.engine import request, several, trust
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Parts
from ewan.experiments.engine.several import Planned
from ewan.extras.transfers import optimum, outcomes, presentation, reading, scenario_text, strategies
from ewan.extras.transfers.plan import TransferPlan
from ewan.extras.transfers.presentation import TransfersRun
from ewan.extras.transfers.reading import TransferRequests
from ewan.extras.transfers.strategies import STRATEGIES, Strategy
from ewan.generator import scenario as scenarios
from ewan.labs import host
from ewan.labs.base.reading import noted
from ewan.labs.base.wording import nearest
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import (
    json_option,
    pass_context,
    renamed_option,
    runtime_option,
    trust_option,
    unverified_option,
)
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.context import Context
from ewan.labs.record.labels import Labels

PACING = ("psp", "tbf", "fq", "none")


@click.command("transfers")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--service", "services", default="ts1,ts2", show_default=True, metavar="NAMES", help="ts1 all at once, ts2 in turn"
)
@click.option("--run", "run", is_flag=True, help="run each plan, and compare promised with measured times")
@renamed_option(
    "--dry-run", "only_shown", old="--show", is_flag=True, help="print the scenario of each plan and run nothing"
)
@click.option(
    "--pacing",
    type=click.Choice(PACING),
    default=PACING[0],
    show_default=True,
    help="what paces the sources; none: only TCP shares the link",
)
@runtime_option
@unverified_option
@trust_option
@running.label_options
@json_option(lambda: presentation.TransfersDocument)
@guarded
@pass_context
def transfers_command(
    context: Context,
    /,
    file: Path,
    services: str,
    run: bool,
    only_shown: bool,
    pacing: str,
    unverified: bool,
    label: str | None,
    tags: tuple[str, ...],
    note: str | None,
    as_json: bool,
) -> None:
    """Plan bulk transfers by the transfer services of the eWAN paper, and run the plans.

    FILE has a lab, and requests with a volume, a time window and a largest rate (docs/how-to/experiments/transfers.md).
    TS1 starts every transfer when it is released; TS2 gives each its path to itself, one after the other, and refuses
    what would end after its deadline.

    \b
    ewan suite transfers requests.yaml
    ewan suite transfers requests.yaml --run --runtime virtual
    ewan suite transfers requests.yaml --service ts2 --dry-run > my.scenario.yaml
    """
    wanted = _services(services)
    virtual = is_virtual(context)
    with noted() as read:
        asked = reading.load(file, host.virtual_facts() if virtual else host.facts())
    plans = {strategy: strategies.plan(asked.problem, strategy) for strategy in wanted}
    word = None if pacing == "none" else pacing
    if only_shown:
        texts = [scenario_text.text(asked, plan, strategy, word) for strategy, plan in plans.items() if plan.accepted]
        click.echo("---\n".join(texts), nl=False)
        return
    best = optimum.best(asked.problem)
    if not as_json:
        for strategy, plan in plans.items():
            context.reporter.console.print(presentation.plan_sheet(plan, strategy))
            context.reporter.console.print()
        context.reporter.console.print(presentation.objectives_sheet(plans, best))
    complete = True
    runs: dict[Strategy, TransfersRun] = {}
    if run:
        called = running.labels_of(label, tags, note)
        if not virtual:
            as_root(context)
        complete = _run(context, asked, read, plans, word, unverified, called, runs, as_json)
    if as_json:
        context.reporter.emit(presentation.document(asked.problem, plans, best, runs))
    sys.exit(0 if complete else 1)


def _services(text: str) -> list[Strategy]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in STRATEGIES:
            raise Refused(f'--service "{name}": there is no such service, {nearest(name, STRATEGIES)}')
    return cast(list[Strategy], names)


def _run(
    context: Context,
    asked: TransferRequests,
    read: Mapping[Path, os.stat_result],
    plans: Mapping[Strategy, TransferPlan],
    pacing: str | None,
    unverified: bool,
    called: Labels,
    runs: dict[Strategy, TransfersRun],
    as_json: bool,
) -> bool:
    """Run each plan, print its outcome, and add it to `runs`; return whether all of them are complete."""
    virtual = is_virtual(context)
    planned = []
    for strategy, plan in plans.items():
        if not plan.accepted:
            context.reporter.note(f"{strategy} accepts no request: there is nothing to run")
            continue
        file = asked.file.parent / f"{scenario_text.name_of(asked, strategy)}.scenario.yaml"
        scenario = scenarios.parse(scenario_text.text(asked, plan, strategy, pacing), file)
        runtime = "virtual" if virtual else context.runtime
        facts = request.facts_of(scenario, None, None, {}, None, runtime, called)
        planned.append(Planned(strategy, scenario.name, scenario.runs(), facts))
        trust.ask_for_scenario(context, planned[-1].runs, virtual=virtual, read=read)

    def ended(name: str, experiment: Experiment) -> None:
        strategy = cast(Strategy, name)
        directory = experiment.directory
        found = outcomes.compared(plans[strategy], experiment.place(experiment.runs[0]))
        runs[strategy] = presentation.run_entry(directory, found)
        if not as_json:
            context.reporter.console.print()
            context.reporter.console.print(presentation.seen_sheet(found, strategy))
            where = f"{experiment.document.status}  report: {directory / 'report.html'}"
            context.reporter.console.print(where, soft_wrap=True, markup=False)

    parts = Parts.default()
    experiments = several.prepared(planned, virtual, unverified)
    return several.run(context, experiments, parts, ended=ended)
