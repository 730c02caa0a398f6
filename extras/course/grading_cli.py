"""The command `course grade`: all that was handed in, graded on all cores.

In: a directory of submissions. Out: a table of grades (CSV), and files for learning platforms. An interrupted call goes
on when it is made again. Exit status 0 when all was graded, whatever the grades are, 1 when something could not be, 2
for what the teacher can put right.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ewan.experiments.engine.unit import Tools
from ewan.extras.course import copies, grading, ledger, pool, roster, sources, uploader
from ewan.extras.course.formats import FORMATS, sheet, wording
from ewan.extras.course.grade import Grade
from ewan.extras.course.grading import GradingMachine, GradingTask
from ewan.extras.course.ledger import GradeLedger
from ewan.extras.course.pool import LostCall
from ewan.extras.course.sources import Source
from ewan.extras.course.submission import MOST_BYTES
from ewan.labs import rundir
from ewan.labs.base import processes
from ewan.labs.base.codec import Struct, field
from ewan.labs.base.reading import read_bytes
from ewan.labs.base.sheet import grid
from ewan.labs.base.units.shown import about
from ewan.labs.base.writing import trouble, write
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, renamed_option
from ewan.labs.context import Context
from ewan.labs.runtime import kernel
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary

LONGEST_S = 600.0
"""For one submission: a hundred times what a lab may take."""


class GradingOutput(Struct, kw_only=True):
    """The files that were written, and the number of submissions by their state."""

    csv: str
    files: tuple[str, ...]
    graded: int
    refused: int
    failed: int
    missing: int
    replaced: int
    to_be_looked_at: int = field(name="to be looked at")


@click.command("grade")
@click.argument("submissions", metavar="SUBMISSIONS", type=click.Path(path_type=Path))
@click.option(
    "--csv",
    "table",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("grades.csv"),
    show_default=True,
    help="the table of grades",
)
@click.option(
    "--format",
    "forms",
    type=click.Choice(list(FORMATS)),
    multiple=True,
    help="also write files for a learning platform; may be given again",
)
@renamed_option(
    "--output",
    "-o",
    "out",
    old="--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("grades"),
    show_default=True,
    help="folder for those files",
)
@click.option(
    "--students", metavar="FILE", type=click.Path(path_type=Path), help="the students who should have handed in"
)
@click.option("--again", is_flag=True, help="grade all submissions anew, also those that were graded before")
@json_option(lambda: GradingOutput)
@guarded
@pass_context
def grade_command(
    context: Context,
    submissions: Path,
    table: Path,
    forms: tuple[str, ...],
    out: Path,
    students: Path | None,
    again: bool,
    as_json: bool,
) -> None:
    """Grade submissions: SUBMISSIONS is a directory, or one file.

    What is true for each student is computed from the student's number, and the runs that were handed in are run again:
    the same bytes confirm them. Nothing of a submission is executed. What was graded before is not graded again, unless
    the file, the lab or this program has changed.

    \b
    ewan course grade SUBMISSIONS/
    ewan course grade SUBMISSIONS/ --csv grades.csv --students students.csv --format gradescope
    """
    from ewan.analysis.one_run import SingleRun  # it takes a second to import

    listed = None if students is None else roster.addresses(students)
    if forms and out.resolve() == submissions.resolve():
        raise Refused(f"--output {out}: submissions are there: name another directory")
    found = sources.below(submissions, [out, *([] if context.store is None else [context.store])])
    with tempfile.TemporaryDirectory(prefix="ewan-grade-") as scratch:
        tools = Tools(kernel.kernel(context.reporter.tell), node_binary(context.binary))
        store = None if context.store is None else context.store.absolute()
        machine = GradingMachine(SingleRun, tools, store, Path(scratch))
        with GradeLedger(table.with_name(f"{table.name}{ledger.ENDING}")).opened(again) as book:
            grades = all_graded(context, machine, found, book)
    numbers = {email: student for student, email in (listed or {}).items() if email}
    grades = uploader.held(copies.looked_at(grades), uploader.found(submissions), numbers)
    labs = {each.lab for each in grades if each.status == "graded"}
    if listed is not None:
        grades = roster.held(grades, list(listed), labs)
    with rundir.kept(table.parent, "write --csv FILE where you may write"):
        write(table, sheet.text(grades))
    written = [path for name in forms for path in filed(out, grades, name, submissions.is_file())]
    if as_json:
        context.reporter.emit({"csv": str(table), "files": [str(path) for path in written], **counts(grades)})
    else:
        show(context, grades)
        where = f"  {out}" if written else ""
        context.reporter.console.print(f"{table}{where}", soft_wrap=True)
    sys.exit(1 if any(each.status in ("refused", "failed") for each in grades) else 0)


def all_graded(context: Context, machine: GradingMachine, found: Sequence[Source], book: GradeLedger) -> list[Grade]:
    """The grade of each file, in order: from the ledger, or made now on all cores."""
    by = grading.basis(machine)
    tasks = [GradingTask(each.file, each.path, digest(each.path)) for each in found]
    grades: dict[int, Grade] = {}
    todo: list[int] = []
    known_count = 0
    for number, task in enumerate(tasks):
        if task.path.is_symlink():
            grades[number] = Grade(file=task.file, status="refused", error="is a link, and links are not followed")
        elif (known := book.find(task.file, task.sha256, by)) is not None:
            grades[number] = known
            known_count += 1
        else:
            todo.append(number)
    if known_count:
        context.reporter.tell(f"{known_count} of {len(tasks)} submissions were graded before: --again grades them anew")
    try:
        for index, made in now_graded(context, machine, [tasks[number] for number in todo]):
            if made.status != "failed":  # which may be this machine's fault: tried again the next time
                book.add(made, by)
            grades[todo[index]] = made
    except KeyboardInterrupt:
        context.reporter.tell(f"{len(grades)} of {len(tasks)} are graded: the same command goes on with the others")
        raise
    return [grades[number] for number in range(len(tasks))]


def now_graded(context: Context, machine: GradingMachine, tasks: Sequence[GradingTask]) -> Iterator[tuple[int, Grade]]:
    """The grades that are made now, as they are there, each with its place in `tasks`; says how far it is."""
    if not tasks:
        return
    work, begun = functools.partial(grading.graded, machine), time.monotonic_ns()
    with context.reporter.progress("grading …") as progress:
        for done, (index, made) in enumerate(pool.each(work, tasks, at_once(len(tasks)), LONGEST_S), 1):
            task = tasks[index]
            if isinstance(made, LostCall):
                made = Grade(file=task.file, sha256=task.sha256, status="failed", error=made.why)
            left = about((time.monotonic_ns() - begun) / done * (len(tasks) - done), "time", 2)
            progress.tick(f"graded {done} of {len(tasks)} submissions, about {left} left")
            yield index, made


def at_once(count: int) -> int:
    """Return the number of processes for this number of submissions."""
    return min(count, processes.cpus())


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes; of one that cannot be read, or is too large to be, of its size."""
    try:
        return hashlib.sha256(read_bytes(path, MOST_BYTES)).hexdigest()
    except OSError:
        size = path.lstat().st_size if path.exists() else 0
        return hashlib.sha256(f"{path} {size}".encode()).hexdigest()


def filed(out: Path, grades: Sequence[Grade], form: str, alone: bool) -> Iterator[Path]:
    """Writes what a form has of each submission; LabError where it cannot be."""
    for name, content in FORMATS[form](grades, alone):
        path = out / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, content)
        except OSError as error:
            raise LabError(trouble(error, path, "write --output DIR where you may write")) from None
        yield path


def counts(grades: Sequence[Grade]) -> dict[str, int]:
    """Return the number of submissions by their state."""
    words = ("graded", "refused", "failed", "missing")
    return {word: sum(each.status == word for each in grades) for word in words} | {
        "replaced": sum(bool(each.replaced) for each in grades),
        "to be looked at": sum(bool(each.notes) for each in grades),
    }


def show(context: Context, grades: Sequence[Grade]) -> None:
    """A line for each lab, and how many submissions are to be looked at."""
    rows = []
    for lab in sorted({each.lab for each in grades if each.status == "graded"}):
        those = [each for each in grades if each.lab == lab and each.status == "graded" and not each.replaced]
        mean = sum(each.points for each in those) / len(those)
        runs = sum(len(each.runs) for each in those)
        confirmed = sum(each.confirmed for each in those)
        rows.append([lab, str(len(those)), f"{mean:.3g}", wording.amount(those[0].most), f"{confirmed} of {runs}"])
    if rows:
        columns = ["lab", "submissions", "points, mean", "of", "runs confirmed"]
        context.reporter.console.print(grid("Grades", columns, rows, most=len(rows)))
    said = ", ".join(f"{count} {word}" for word, count in counts(grades).items() if count)
    context.reporter.console.print(said, soft_wrap=True)
