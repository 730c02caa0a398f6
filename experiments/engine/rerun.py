"""The command `rerun`: an experiment once more, from its stored files, beside its original.

In: an experiment's directory, archive or crate. Out: a directory of its own with comparison.json; on standard output
the differences, and last the outcome in a line. Exit status 0 when all was measured and is the same, 1 when something
is missing or differs, 2 for an error that the user can correct."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click
import orjson

from ewan.experiments.engine import archive, compare, engine, preparation, trust
from ewan.experiments.engine.experiment import Experiment, Job
from ewan.experiments.engine.interruption import status_of
from ewan.experiments.engine.parts import Facts, Parts
from ewan.experiments.engine.request import circumstances
from ewan.experiments.engine.source import SCENARIO, SETTINGS
from ewan.labs import rundir
from ewan.labs.base import codec, writing
from ewan.labs.base.reading import one_line, read_bytes
from ewan.labs.base.sheet import grid
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, load_module_option, machines_option, pass_context, trust_option
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.record import summary as summaries
from ewan.labs.record.experiment import Clock
from ewan.labs.runtime.base import NAMES

COMPARISON = "comparison.json"
IDENTICAL, EQUAL, DIFFERS = "identical", "equal within U", "differs, here: "
"""The last line of the output: the third goes on with what differs. A crate's reproduce.sh reads it."""
SAME = (IDENTICAL, EQUAL)
MOST_FINDINGS = 60
COLOURS = {"same": "green", "within noise": "green", "different": "bold red", "shown": "dim"}


class RerunOutput(codec.Struct):
    """A repetition beside its original, as `comparison.json` has it, and the directory of the repetition."""

    directory: str
    format: Literal["ewan-comparison/1"]
    original: str
    clock: Clock
    complete: bool
    outcome: str
    findings: tuple[compare.RerunComparison, ...]


@click.command("rerun")
@click.argument("original", metavar="ARCHIVE|DIR|CRATE", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--runtime",
    "runtime_name",
    type=click.Choice(NAMES),
    help="a runtime of the same clock (default: that of the experiment)",
)
@machines_option
@trust_option
@load_module_option
@json_option(lambda: RerunOutput)
@guarded
@pass_context
def rerun_command(context: Context, original: Path, runtime_name: str | None, as_json: bool) -> None:
    """Run an experiment once more in the same clock, and say whether the results differ.

    Nothing is taken from the store. In the virtual clock nothing may differ; live, no metric by more than its expanded
    uncertainty U. The last line is "identical", "equal within U" or "differs, here: …". Exit status 1 where something
    differs, or where there is nothing to compare. A crate is what ewan exp archive writes, unpacked or not.
    What an archive or a crate executes is shown and asked for, once.

    \b
    ewan exp rerun results/20261121T120000Z-parallel-streams/parallel-streams.tar.zst
    """
    parts = Parts.default()
    with archive.opened(original) as before:
        archive.intact(before, original)
        trust.ask_for_experiment(context, original, before)
        runtime = again_on(before, runtime_name, context.machines is not None)
        if not before.virtual:
            as_root(context)
        directory = rundir.make(before.name)
        status = status_of(context, directory, lambda: repeat(context, before, original, directory, parts, runtime))
        now = Experiment.load(directory)
        findings = compared(before, now, parts)
        result = outcome(before, now, findings)
    document = {
        "format": "ewan-comparison/1",
        "original": str(original),
        "clock": before.document.clock,
        "complete": status == 0,
        "outcome": result,
        "findings": findings,
    }
    writing.write(directory / COMPARISON, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    rundir.give_back(directory)
    if status:
        context.reporter.tell(f"the repetition is not complete: ewan exp resume {directory} goes on with it")
    if as_json:
        context.reporter.emit({"directory": str(directory), **document})
    else:
        show_findings(context, findings, before.virtual)
        for each in compare.others(before.document, now.document) if result not in SAME else ():
            context.reporter.warn(f"{each.what}: {each.why}: {each.before} before, {each.now} now")
        context.reporter.console.print(f"{counts(findings, before.virtual)}  {directory}", soft_wrap=True)
        context.reporter.console.print(result, soft_wrap=True, markup=False)
    sys.exit(0 if result in SAME else 1)


def again_on(before: Experiment, wanted: str | None, over_machines: bool = False) -> str:
    """The runtime of the repetition."""
    first = "virtual" if before.virtual else before.document.runtime
    if over_machines and before.virtual:
        raise Refused("--machines: the experiment was in the virtual clock, and so is its repetition: leave it out")
    if over_machines:
        return "cluster"
    if first == "cluster" and wanted is None:
        raise Refused("the experiment's labs stretched over machines: write --machines FILE, or --runtime netns")
    if wanted is None or wanted == "auto":
        return first
    if before.virtual != (wanted == "virtual"):
        clock = "virtual" if before.virtual else "live"
        raise Refused(f"--runtime {wanted}: the experiment was in the {clock} clock, and so is its repetition")
    return wanted


def repeat(context: Context, before: Experiment, original: Path, directory: Path, parts: Parts, runtime: str) -> int:
    """Run the same runs again, from their stored files, in a new directory; return the exit status."""

    def fresh() -> Iterator[Job]:
        for entry in before.runs:
            waiting = codec.replace(entry, certificate=None, verified=None, key=None)
            waiting.begin_anew()
            yield dataclasses.replace(before.job(entry), entry=waiting)

    origin = before.document.again(**circumstances(), runtime=runtime, rerun_of=str(original))
    names = [name for name in (SCENARIO, SETTINGS) if (before.directory / name).exists()]
    files = {name: _kept(before.directory / name) for name in names}
    over = None if context.machines is None else context.multi_machine()
    prepared = preparation.prepare(
        fresh(),
        Facts(files, origin),
        virtual=before.virtual,
        directory=directory,
        unverified=before.document.unverified,
        over=over,
    )
    return engine.run(prepared, parts=parts, context=context, fresh=True)


def _kept(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None


def compared(before: Experiment, now: Experiment, parts: Parts) -> list[compare.RerunComparison]:
    """The differences between an experiment and its repetition; empty where one of the two has no results."""
    if before.virtual:
        return compare.virtual(before, now)
    if not all((each.directory / summaries.FILE).exists() for each in (before, now)):
        return []
    first, second = (summaries.read(each.directory) for each in (before, now))
    return compare.live(first, second, parts.welch)


def show_findings(context: Context, findings: Sequence[compare.RerunComparison], virtual: bool) -> None:
    """Prints the comparisons, a row each."""
    rows = [
        [each.what, each.before, each.now, f"[{COLOURS[each.verdict]}]{each.verdict}[/]", each.why] for each in findings
    ]
    columns = ["run" if virtual else "metric", "before", "now", "verdict", "why"]
    context.reporter.console.print(grid("The repetition beside its original", columns, rows, most=MOST_FINDINGS))


def counts(findings: Sequence[compare.RerunComparison], virtual: bool) -> str:
    """The number of comparisons, and the number of differences among them, in one line."""
    judged = [each for each in findings if each.verdict != "shown"]
    differ = sum(each.verdict == "different" for each in judged)
    what = "run" if virtual else "metric"
    return f"{differ} of {engine.counted(len(judged), what)} {'differs' if differ == 1 else 'differ'}"


def outcome(before: Experiment, now: Experiment, findings: Sequence[compare.RerunComparison]) -> str:
    """The outcome of a repetition: one of `SAME`, or `differs, here: ` with the first difference.

    Live, two values are equal within the expanded uncertainty U that `compare.live` uses. A repetition without the
    results that the original has differs."""
    ended = {entry.number: entry for entry in now.runs}
    for entry in before.runs:
        again = ended.get(entry.number)
        status, error = (again.status, again.error) if again else ("missing", None)
        if entry.status == "complete" != status:
            why = f" ({one_line(error)})" if error else ""
            return f"{DIFFERS}run {entry.number} ({entry.name}): complete before, {status} now{why}"
    judged = [each for each in findings if each.verdict != "shown"]
    if not judged:
        return f"{DIFFERS}there is nothing to compare, one of the two has no results"
    for each in judged:
        if each.verdict == "different":
            values = each.now if before.virtual else f"{each.before} before, {each.now} now"
            return DIFFERS + one_line(f"{each.what}: {values}")
    return IDENTICAL if before.virtual else EQUAL
