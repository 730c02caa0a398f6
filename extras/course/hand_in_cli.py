"""The command `course hand-in`: one file of what a student answered and ran.

In: the student's folder. Out: LAB-STUDENT.zip in the current directory. Exit status 0, or 2 for what the student can
put right.
"""

from __future__ import annotations

from pathlib import Path

import click

from ewan.extras.course import folder, hand_in, words
from ewan.labs.base.codec import Struct
from ewan.labs.base.units.shown import about
from ewan.labs.base.writing import trouble, write
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, renamed_option
from ewan.labs.context import Context


class HandInOutput(Struct):
    """The file that is handed in, and the number of experiments and runs in it."""

    file: str
    lab: str
    student: str
    unanswered: tuple[str, ...]
    experiments: int
    runs: int
    notes: tuple[str, ...]


@click.command("hand-in")
@click.argument("name", metavar="[FOLDER]", required=False)
@click.option("--notebook", is_flag=True, help="include the notebook for the teacher to read; it is not executed")
@renamed_option(
    "--output",
    "-o",
    "out",
    old="--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path(),
    help="the folder for the file",
)
@json_option(lambda: HandInOutput)
@guarded
@pass_context
def hand_in_command(context: Context, name: str | None, notebook: bool, out: Path, as_json: bool) -> None:
    """Make the file to hand in: answers, records of the runs, and the checks made.

    FOLDER is one that ewan course start made; without it, the current directory, which may be named by its lab too.
    Whoever makes the file again replaces it.

    \b
    ewan course hand-in bufferbloat      writes bufferbloat-1234.zip
    """
    mine = folder.find(name)
    made, own = hand_in.made(mine, notebook), words.of(mine.lab.language)
    path = out / made.name
    try:
        write(path, made.content)
    except OSError as error:
        raise Refused(trouble(error, path, "write --output DIR where you may write")) from None
    if as_json:
        context.reporter.emit(
            HandInOutput(
                file=str(path),
                lab=made.submission.lab,
                student=made.submission.student,
                unanswered=tuple(made.unanswered),
                experiments=len(made.submission.experiments),
                runs=made.runs,
                notes=tuple(made.notes),
            )
        )
        return
    for line in made.notes:
        context.reporter.note(f"{own.not_taken}: {line}")
    if made.unanswered:
        context.reporter.warn(f"{own.unanswered}: {', '.join(made.unanswered)}")
    if not made.runs:
        context.reporter.warn(own.no_run)
    size = about(len(made.content), "size", 3)
    line = own.handed_in.format(file=path.absolute(), answers=len(made.submission.answers), runs=made.runs, size=size)
    context.reporter.console.print(line, soft_wrap=True, markup=False)
