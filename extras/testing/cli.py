"""The command `test`: tests of network programs from a file, in the virtual clock.

In: a file of tests. Out: a line for each case, and a file for services of continuous integration. Exit status 0 when
all pass, 1 when one does not, 2 for what the user can put right."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ewan.experiments.engine import trust
from ewan.extras.testing import files, junit, running
from ewan.labs import rundir
from ewan.labs.base import codec, writing
from ewan.labs.base.units.shown import about
from ewan.labs.base.wording import nearest
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, trust_option
from ewan.labs.context import Context


class CaseOutput(codec.Struct):
    """The outcome of a case of a test. `error`: why it did not run."""

    name: str
    passed: bool
    failures: tuple[str, ...]
    error: str | None
    directory: str


class TestsOutput(codec.Struct):
    """The outcomes of all cases."""

    cases: tuple[CaseOutput, ...]


@click.command("test")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--junit", "report", metavar="FILE.xml", type=click.Path(path_type=Path), help="write the outcomes there")
@click.option("-n", "workers", metavar="N", type=click.IntRange(1), help="so many at once (default: one for each CPU)")
@trust_option
@json_option(lambda: TestsOutput)
@guarded
@pass_context
def test_command(
    context: Context, file: Path, names: tuple[str, ...], report: Path | None, workers: int | None, as_json: bool
) -> None:
    """Run tests of network programs in the virtual clock.

    FILE has scenarios with what is expected of them (docs/how-to/testing/files.md). NAME chooses tests.

    \b
    ewan test network.test.yaml
    ewan test network.test.yaml --junit out.xml
    """
    tests = files.load(file)
    for name in names:
        if name not in (known := [test.name for test in tests]):
            raise Refused(f"{file} has no test {name}: {nearest(name, known)}")
    chosen = [test for test in tests if not names or test.name in names]
    for test in chosen:
        trust.ask_for_scenario(context, test.scenario.runs(), virtual=True)
    wanted = list(running.cases(chosen))
    if report is not None and not report.absolute().parent.is_dir():
        raise Refused(f"--junit {report}: there is no folder {report.parent}: make it before")
    if report is not None and report.is_dir():
        raise Refused(f"--junit {report}: is a folder: write the path of a file")
    folder = rundir.make(file.name.removesuffix(".yaml").removesuffix(".test"))

    def done(outcome: running.Outcome) -> None:
        how = "passed" if outcome.passed else "failed"
        context.reporter.tell(f"{outcome.case.name}: {how} ({about(outcome.wall_ns, 'time', 3)})")
        for line in (*outcome.failures, *([] if outcome.error is None else [outcome.error])):
            context.reporter.tell(f"  {line}")

    outcomes = running.execute(wanted, folder, workers, done)
    if report is not None:
        try:
            writing.write(report, junit.document(file, outcomes))
        except OSError as error:
            raise Refused(f"--junit {report}: {error.strerror}: write another path; records: {folder}") from None
    if as_json:
        context.reporter.emit(
            TestsOutput(
                tuple(
                    CaseOutput(each.case.name, each.passed, each.failures, each.error, str(each.directory))
                    for each in outcomes
                )
            )
        )
    failed = sum(not each.passed for each in outcomes)
    context.reporter.tell(f"{len(outcomes) - failed} of {len(outcomes)} passed; records: {folder}")
    sys.exit(1 if failed else 0)
