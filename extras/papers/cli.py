"""The command `paper`: experiments of papers, run again in the virtual clock, each with a verdict.

In: names of targets, a scale. Out: experiments' directories; on standard output a table of what the papers say beside
what was measured; the same in results/papers/, as a page with pictures and as JSON. A call that was interrupted goes
on when it is made again. Exit status 0 when all was measured, whatever the verdicts are.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from ewan.experiments.engine import cli as running
from ewan.experiments.engine import engine, interruption, preparation, request, several
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Parts, Wall
from ewan.extras.papers import experiments, ledger, targets, verdicts
from ewan.extras.papers.experiments import TargetExperiment
from ewan.extras.papers.ledger import LedgerExperiment, OutcomePage, PaperLedger
from ewan.extras.papers.targets import SCALES, PaperTarget, Scale
from ewan.extras.papers.verdicts import Outcome, PaperSummary
from ewan.labs import rundir
from ewan.labs.base import codec
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.errors import UserError
from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Incomplete, Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, renamed_option
from ewan.labs.context import Context
from ewan.labs.record import summary as summaries

ALL = "all"


class PapersOutput(codec.Struct):
    """The outcomes of paper targets, with the file that keeps them and the page that shows them."""

    ledger: str
    page: str
    outcomes: list[OutcomePage]


class ListedTarget(codec.Struct):
    """A finding of a paper that can be measured again."""

    name: str
    paper: str
    title: str


class PaperTargets(codec.Struct):
    """All targets."""

    targets: list[ListedTarget]


@click.command("paper")
@click.argument("names", nargs=-1, metavar="[NAME…|all]")
@renamed_option(
    "--size",
    "scale",
    old="--scale",
    type=click.Choice(SCALES),
    default="quick",
    show_default=True,
    help="full: as in the paper",
)
@click.option("--again", is_flag=True, help="begin anew, also where an earlier call was interrupted")
@renamed_option(
    "--dry-run", "plan", old="--plan", is_flag=True, help="print what would be run and its cost, and run nothing"
)
@json_option(lambda: (PapersOutput, PaperTargets))
@guarded
@pass_context
def paper_command(
    context: Context, names: tuple[str, ...], scale: Scale, again: bool, plan: bool, as_json: bool
) -> None:
    """Repeat findings of papers in the virtual clock, and say whether they agree. Without a name, list them.

    \b
    ewan suite papers nxe-table-4
    ewan suite papers all                     every target at the quick scale
    ewan suite papers nxe-figure-4 --size full
    """
    if not names:
        listed(context, targets.every(), as_json)
        return
    chosen = targets.every() if ALL in names else [targets.find(name) for name in dict.fromkeys(names)]
    asked = {target.name: experiments.wanted(target, scale) for target in chosen}
    context = dataclasses.replace(context, runtime="virtual")
    parts = Parts.default()
    if plan:
        wall = parts.wall(context)
        for target in chosen:
            click.echo("\n".join(planned(target, asked[target.name], wall)))
        return
    word = ALL if ALL in names else "+".join(target.name for target in chosen)
    book = ledger.opened(word, scale, request.circumstances()["commit"], again)
    if book.experiments:
        context.reporter.tell(f"going on with {book.path}: --again begins anew")
    runner = Runner(context, parts, _meters(), book)
    outcomes = []
    for number, target in enumerate(chosen, 1):
        context.reporter.tell(f"{number} of {len(chosen)}: {target.name}")
        found = {name: runner.found(target, each) for name, each in asked[target.name].items()}
        outcomes.append(verdicts.judge(target, found))
    told = [described(*each, asked, book) for each in zip(chosen, outcomes, strict=True)]
    book.end(told)
    from ewan.analysis import papers as pages  # it takes a second to import

    page = pages.write(book.path)
    if as_json:
        context.reporter.emit(PapersOutput(str(book.path), str(page), told))
    else:
        shown(context, outcomes, book, page)
    sys.exit(0 if all(each.status == "complete" for each in book.experiments.values()) else 1)


def _meters() -> Mapping[str, Meter]:
    """Measurements without a scenario, by their names in targets of papers."""
    from ewan.calibration import bursts

    return {"bursts": bursts.points}


Meter = Callable[[Context], dict[str, JsonValue]]
"""A measurement, which gives points as the summary of an experiment does."""


@dataclasses.dataclass(slots=True)
class Runner:
    """Runs experiments, each once, and keeps the book; `meters` are measurements without a scenario."""

    context: Context
    parts: Parts
    meters: Mapping[str, Meter]
    book: PaperLedger

    def found(self, target: PaperTarget, wanted: TargetExperiment) -> PaperSummary | None:
        """The summary of an experiment, run now if it was not before; None where it could not be run."""
        done = self.book.experiments.get(wanted.key)
        if done is None or done.status == "running":
            begun = time.monotonic_ns()
            try:
                done = self._run(target, wanted, done)
            except (Refused, UserError) as error:
                if isinstance(error, Refused) and not isinstance(error, Incomplete):
                    self.context.reporter.tell("the same command goes on with what is missing")
                    raise
                self.context.reporter.tell(f"{target.name}, {wanted.name}: {error}")
                last = self.book.experiments.get(wanted.key)
                done = LedgerExperiment(None if last is None else last.directory, "incomplete", error=str(error))
            done = codec.replace(done, seconds=round((time.monotonic_ns() - begun) / NS_PER_SECOND, 3))
            self.book.experiments[wanted.key] = done
            self.book.save()
        if done.directory is None:
            return done.summary
        path = Path(done.directory) / "summary.json"
        if not path.exists():
            return None
        return msgspec.convert(summaries.read(path.parent), PaperSummary, from_attributes=True)

    def _run(self, target: PaperTarget, wanted: TargetExperiment, before: LedgerExperiment | None) -> LedgerExperiment:
        if wanted.scenario is None:
            return self._measured(wanted)
        if (
            before is not None
            and before.directory is not None
            and (Path(before.directory) / "experiment.json").exists()
        ):
            directory = Path(before.directory)
            if Experiment.load(directory).document.status != "complete":
                status = interruption.status_of(
                    self.context, directory, lambda: engine.resume(directory, parts=self.parts, context=self.context)
                )
                return LedgerExperiment(str(directory), "incomplete" if status else "complete")
            return LedgerExperiment(str(directory), "complete")
        scenario, labels = wanted.scenario, running.labels_of(None, (target.name,), None)
        runs = scenario.runs(wanted.settings, wanted.scale, wanted.seeds)
        facts = request.facts_of(scenario, None, wanted.scale, dict(wanted.settings), wanted.seeds, "virtual", labels)
        directory = rundir.make(scenario.name)
        self.book.experiments[wanted.key] = LedgerExperiment(str(directory))
        self.book.save()

        def work() -> int:
            prepared = preparation.prepare(preparation.in_time(runs, True), facts, virtual=True, directory=directory)
            lasting = about(prepared.expected_ns, "time", 3)
            self.context.reporter.tell(
                f"{wanted.name}: {engine.counted(len(runs), 'run')}, {lasting} of simulated time"
            )
            return engine.run(prepared, parts=self.parts, context=self.context)

        status = interruption.status_of(self.context, directory, work)
        return LedgerExperiment(str(directory), "incomplete" if status else "complete")

    def _measured(self, wanted: TargetExperiment) -> LedgerExperiment:
        meter = self.meters.get(wanted.measured or "")
        if meter is None:
            raise Refused(f'measured "{wanted.measured}": write one of {", ".join(self.meters)}')
        summary = codec.from_data(PaperSummary, meter(self.context), "summary")
        return LedgerExperiment(None, "complete", summary=summary)


def listed(context: Context, every: Sequence[PaperTarget], as_json: bool) -> None:
    """All targets, a line each."""
    if as_json:
        listing = [ListedTarget(each.name, each.description.paper, each.description.title) for each in every]
        context.reporter.emit(PaperTargets(listing))
        return
    rows = [[each.name, each.description.paper, each.description.title] for each in every]
    context.reporter.console.print(grid("What papers found", ["target", "paper", "what"], rows, most=len(rows)))
    context.reporter.console.print("ewan suite papers NAME runs one, ewan suite papers all all of them", soft_wrap=True)


def planned(target: PaperTarget, wanted: Mapping[str, TargetExperiment], wall: Wall) -> list[str]:
    """The runs of a target, and their needs, a line each."""
    lines = [f"{target.name}: {target.description.title} ({target.description.paper})"]
    for name, each in wanted.items():
        if each.scenario is None:
            lines.append(f"  {name}: {each.measured}")
            continue
        words = " ".join(f"{key}={value}" for key, value in each.settings.items())
        scale = f" --size {each.scale}" if each.scale else ""
        lines.append(f"  {name}: {' '.join(f'{each.scenario.name}{scale} {words}'.split())}: {needed(each, wall)}")
    return lines


def needed(wanted: TargetExperiment, wall: Wall) -> str:
    """The runs of a scenario, their time in both clocks, and the memory that the largest of them may take."""
    assert wanted.scenario is not None
    runs = wanted.scenario.runs(wanted.settings, wanted.scale, wanted.seeds)
    return several.needed(runs, wall)


def described(
    target: PaperTarget, outcome: Outcome, asked: Mapping[str, Mapping[str, TargetExperiment]], book: PaperLedger
) -> OutcomePage:
    """An outcome with the further data of its page."""
    places = {name: book.experiments.get(each.key) for name, each in asked[target.name].items()}
    return OutcomePage(
        outcome.name,
        outcome.title,
        outcome.paper,
        outcome.rows,
        outcome.verdict,
        about=target.description.about,
        scaled=target.description.scaled,
        picture=target.picture,
        experiments={name: None if done is None else done.directory for name, done in places.items()},
    )


def shown(context: Context, outcomes: Sequence[Outcome], book: PaperLedger, page: Path) -> None:
    """The table: a line for each number and each shape."""
    rows = [
        [each.name if at == 0 else "", row.what, row.paper, row.here, row.verdict, row.why]
        for each in outcomes
        for at, row in enumerate(each.rows)
    ]
    columns = ["target", "what", "paper", "here", "verdict", "why"]
    context.reporter.console.print(Sheet(f"Papers, at the {book.scale} scale", columns, rows))
    context.reporter.console.print(
        f"\n{len(outcomes)} target{'s' * (len(outcomes) != 1)}: {verdicts.counted(outcomes)}"
    )
    context.reporter.console.print(f"{page}", soft_wrap=True)
    for each in book.experiments.values():
        if each.error:
            context.reporter.console.print(f"not measured: {each.error}", soft_wrap=True, markup=False)
