"""The command `rerun`: an experiment once more, from what was stored of it, beside its original.

In: an experiment's directory or archive, and the parts that `ewan.py` gives. Out: a directory of its own with
comparison.json; on standard output what differs. Exit status 0 when all was measured and is the same, 1 when something
is missing or differs, 2 for what the user can put right.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import orjson

from generator.engine import archive, compare, engine
from generator.engine.cli import SCENARIO, SETTINGS, circumstances, parts_of, status_of
from generator.engine.experiment import Experiment, Job
from generator.engine.parts import Facts, Parts
from labs import rundir
from labs.commands.errors import Refused, guarded
from labs.commands.options import json_option, pass_context
from labs.commands.privileges import as_root
from labs.context import Context
from labs.record.experiment import DOCUMENT, Origin
from labs.runtime.base import NAMES, LabError
from labs.sheet import grid

COMPARISON = "comparison.json"
MOST_FINDINGS = 60
COLOURS = {"same": "green", "within noise": "green", "different": "bold red", "shown": "dim"}


@click.command("rerun")
@click.argument("original", metavar="ARCHIVE|DIR", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--runtime", "runtime_name", type=click.Choice(NAMES), help="of the same clock; the experiment's if absent"
)
@json_option
@guarded
@pass_context
def rerun_command(context: Context, original: Path, runtime_name: str | None, as_json: bool) -> None:
    """Run an experiment once more, in the same clock, and say whether the two differ.

    In the virtual clock nothing may differ; live, no metric beyond noise. Exit status 1 where something does,
    or where there is nothing to compare.

    \b
    ewan rerun results/20261121T120000Z-parallel-streams/parallel-streams.tar.zst
    """
    parts = parts_of(click.get_current_context())
    with original_of(original) as before:
        intact(before, original)
        runtime = again_on(before, runtime_name)
        if not before.virtual:
            as_root(context)
        directory = rundir.make(before.name)
        status = status_of(context, directory, lambda: repeat(context, before, original, directory, parts, runtime))
        findings = compared(before, Experiment.load(directory))
    document = {
        "format": "ewan-comparison/1",
        "original": str(original),
        "clock": before.document.clock,
        "complete": status == 0,
        "findings": findings,
    }
    (directory / COMPARISON).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    rundir.give_back(directory)
    if as_json:
        context.reporter.emit({"directory": str(directory), **document})
    else:
        show_findings(context, findings, before.virtual)
        context.reporter.console.print(f"{verdict(findings, before.virtual)}  {directory}", soft_wrap=True)
    if status:
        context.reporter.tell(f"the repetition is not complete: ewan run --resume {directory} goes on with it")
    sys.exit(1 if status or not findings or any(each.verdict == "different" for each in findings) else 0)


@contextlib.contextmanager
def original_of(path: Path) -> Iterator[Experiment]:
    """The experiment in a directory, or in an archive, which is unpacked for as long as it is looked at."""
    if path.is_dir():
        yield Experiment.load(path)
        return
    with tempfile.TemporaryDirectory(prefix="ewan-rerun-") as place:
        yield Experiment.load(archive.unpack(path, Path(place)), shown=path)


def intact(before: Experiment, original: Path) -> None:
    """LabError where files of the original are not those that were written."""
    try:
        before.check()
    except LabError as error:
        if original.is_dir():
            raise
        name = str(error).removeprefix(f"{before.directory}/").partition(":")[0]
        raise LabError(
            f"{original}: {name} in it is damaged or missing, it is not what {DOCUMENT} records: take another copy"
        ) from None


def again_on(before: Experiment, wanted: str | None) -> str:
    """The runtime of the repetition."""
    first = "virtual" if before.virtual else before.document.runtime
    if wanted is None or wanted == "auto":
        return first
    if before.virtual != (wanted == "virtual"):
        clock = "virtual" if before.virtual else "live"
        raise Refused(f"--runtime {wanted}: the experiment was in the {clock} clock, and so is its repetition")
    return wanted


def repeat(context: Context, before: Experiment, original: Path, directory: Path, parts: Parts, runtime: str) -> int:
    """The same runs, from what was stored of them, in a new directory; the exit status."""

    def fresh() -> Iterator[Job]:
        for entry in before.runs:
            waiting = dataclasses.replace(entry, status="waiting", error=None, certificate=None, verified=None)
            yield dataclasses.replace(before.job(entry), entry=waiting)

    origin = Origin(**before.document.described(), **circumstances(), runtime=runtime, rerun_of=str(original))
    names = [name for name in (SCENARIO, SETTINGS) if (before.directory / name).exists()]
    files = {name: (before.directory / name).read_bytes() for name in names}
    prepared = engine.prepare(
        fresh(),
        Facts(files, origin),
        virtual=before.virtual,
        directory=directory,
        unverified=before.document.unverified,
    )
    return engine.run(prepared, parts=parts, context=context)


def compared(before: Experiment, now: Experiment) -> list[compare.Comparison]:
    """What differs between an experiment and its repetition; nothing where one of the two has no results."""
    if before.virtual:
        return compare.virtual(before, now)
    summaries = [each.directory / "summary.json" for each in (before, now)]
    if not all(path.exists() for path in summaries):
        return []
    return compare.live(*(orjson.loads(path.read_bytes()) for path in summaries))


def show_findings(context: Context, findings: Sequence[compare.Comparison], virtual: bool) -> None:
    """Prints what was compared, a row each."""
    rows = [
        [each.what, each.before, each.now, f"[{COLOURS[each.verdict]}]{each.verdict}[/]", each.why] for each in findings
    ]
    columns = ["run" if virtual else "metric", "before", "now", "verdict", "why"]
    context.reporter.console.print(grid("The repetition beside its original", columns, rows, most=MOST_FINDINGS))


def verdict(findings: Sequence[compare.Comparison], virtual: bool) -> str:
    """What came of the comparison, in one line."""
    differ = [each for each in findings if each.verdict == "different"]
    if not findings:
        return "there is nothing to compare: one of the two has no results"
    if virtual:
        runs = [each for each in findings if each.verdict != "shown"]
        if not differ:
            return f"the same to the byte: every result of {engine.counted(len(runs), 'run')}"
        return f"{len(differ)} of {engine.counted(len(runs), 'run')} differ: {differ[0].what}: {differ[0].now}"
    if not differ:
        return "no metric differs beyond noise"
    first = differ[0]
    return f"{engine.counted(len(differ), 'metric')} beyond noise: {first.what}: {first.before}, now {first.now}"
