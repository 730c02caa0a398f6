"""The command `course`: teaching labs, from their list to a check of what a student found.

In: a lab's name, a student's number, a folder. Out: a folder, or a table of verdicts. Exit status of a check: 0 when
all is right, 1 when something is wrong or missing, 2 for what cannot be read.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from ewan.extras.course import answer_check, answers, folder, history, local_executor, reading, verdicts, words
from ewan.extras.course.answers import Answers
from ewan.extras.course.fields import Level
from ewan.extras.course.folder import Folder
from ewan.extras.course.verdicts import QuestionVerdict, State
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, field
from ewan.labs.base.reading import one_line
from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.commands.errors import guarded
from ewan.labs.commands.group import CommandGroup
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.virtual import check_path

SUBCOMMANDS = ("list", "start", "check", "hand-in", "grade")

language_option = click.option(
    "--language",
    metavar="LL",
    default=reading.ENGLISH,
    show_default=True,
    help="language of the text, where it is translated",
)


def _subcommand(name: str) -> click.Command | None:
    """The command of a name, imported now; None where there is none."""
    match name:
        case "list":
            return list_command
        case "start":
            return start_command
        case "check":
            return check_command
        case "hand-in":
            from ewan.extras.course.hand_in_cli import hand_in_command

            return hand_in_command
        case "grade":
            from ewan.extras.course.grading_cli import grade_command

            return grade_command
    return None


@click.group("course", cls=CommandGroup, names=lambda: SUBCOMMANDS, load=_subcommand)
def course_command() -> None:
    """Teaching labs that check themselves (docs/tutorials/course.md).

    \b
    ewan course list
    ewan course start bufferbloat --student 1234     a folder: text, scenarios, answers.yaml to fill
    cd bufferbloat
    ewan course check                                right and wrong answers with hints; never the answer
    ewan course hand-in                              one file for the teacher
    ewan course grade SUBMISSIONS/                   all that was handed in: grades.csv
    """


class ListedLab(Struct, kw_only=True):
    """A teaching lab. `prerequisites`: names of labs, and in words what else students know before."""

    number: int
    name: str
    title: str
    about: str
    minutes: int
    level: Level
    prerequisites: tuple[str, ...]
    goals: tuple[str, ...]
    languages: tuple[str, ...]
    points: int


class CourseList(Struct):
    """All teaching labs."""

    labs: tuple[ListedLab, ...]


class StartedFolder(Struct):
    """A student's folder of a lab. `parameters`: the student's own values, as they are written."""

    folder: str
    lab: str
    student: str
    parameters: dict[str, str]


@click.command("list")
@language_option
@json_option(lambda: CourseList)
@guarded
@pass_context
def list_command(context: Context, language: str, as_json: bool) -> None:
    """List the teaching labs."""
    labs = list(reading.every(language))
    if as_json:
        rows = tuple(
            ListedLab(
                number=lab.number,
                name=lab.name,
                title=lab.course.title,
                about=lab.course.about,
                minutes=lab.course.minutes,
                level=lab.course.level,
                prerequisites=lab.course.prerequisites,
                goals=lab.course.goals,
                languages=tuple(lab.languages),
                points=sum(each.points for each in lab.course.questions),
            )
            for lab in labs
        )
        context.reporter.emit(CourseList(rows))
        return
    cells = [
        [
            str(lab.number),
            lab.name,
            lab.course.title,
            f"{lab.course.minutes} min",
            words.of(language).levels[lab.course.level],
            " ".join(str(number) for number in lab.before.values()),
            " ".join(lab.languages),
            lab.course.about,
        ]
        for lab in labs
    ]
    columns = ["", "lab", "title", "time", "level", "after", "languages", "about"]
    context.reporter.console.print(grid("Teaching labs", columns, cells, most=len(cells)))
    context.reporter.console.print("ewan course start NAME --student NUMBER makes a folder for one", soft_wrap=True)


@click.command("start")
@click.argument("name", metavar="LAB")
@click.option(
    "--student", required=True, metavar="NUMBER", help="the student's number, from which the parameters are drawn"
)
@language_option
@click.option(
    "--folder", "path", metavar="DIR", type=click.Path(path_type=Path), help="the folder to make (default: ./LAB)"
)
@json_option(lambda: StartedFolder)
@guarded
@pass_context
def start_command(context: Context, name: str, student: str, language: str, path: Path | None, as_json: bool) -> None:
    """Make a folder for a lab: its text, scenarios with this student's values, a notebook, answers.yaml to fill.

    \b
    ewan course start bufferbloat --student 1234
    ewan course start bufferbloat --student 1234 --language de --folder puffer
    """
    lab = reading.find(name, language)
    made = folder.start(lab, student, path or Path(lab.name))
    try:
        check_path(made)
    except LabError as error:
        context.reporter.warn(str(error))
    if as_json:
        loaded = folder.load(made)
        context.reporter.emit(StartedFolder(str(made), lab.name, loaded.drawing.student, dict(loaded.drawing.texts)))
        return
    own, text = words.of(lab.language), made / f"{lab.name}.md"
    begin = own.begin.format(folder=made, text=text, notebook=f"{lab.name}.ipynb")
    for line in (begin, f"cd {shlex.quote(str(made))}", own.check):
        context.reporter.console.print(line, soft_wrap=True, markup=False)


@click.command("check")
@click.argument("name", metavar="[FOLDER]", required=False)
@json_option(lambda: CheckedFolder)
@guarded
@pass_context
def check_command(context: Context, name: str | None, as_json: bool) -> None:
    """Check the answers in a folder, and give a hint for each wrong one; the right answer is never shown.

    FOLDER is one that ewan course start made; without it, the current directory, which may be named by its lab too.
    What the student has run is not run again. Exit status: 0 all is right, 1 something is wrong or missing, 2 something
    cannot be read or the check cannot be noted.
    """
    mine = folder.find(name)
    given = answers.load(mine.answers, mine.lab.questions)
    found, unnoted = checked(context, mine, given), None
    try:
        history.add(mine.path, verdicts.summary_of(found))
    except LabError as error:  # the verdicts are shown all the same
        unnoted = error
    if as_json:
        context.reporter.emit(codec.data_of(_document(mine, found, given.strange)))
    else:
        show(context, mine, found)
    if unnoted is not None:
        raise unnoted
    sys.exit(2 if given.strange else verdicts.status_of(found))


def checked(context: Context, mine: Folder, given: Answers) -> list[QuestionVerdict]:
    """The verdict on each answer in a folder."""
    for line in given.strange:
        context.reporter.warn(line)
    if mine.older:
        context.reporter.note(
            f"{mine.path}: the lab has changed since this folder was made: checked against the lab as it is now"
        )
    from ewan.analysis.one_run import SingleRun  # it takes a second to import

    recorded = verdicts.recorded_predictions(each.verdicts for each in history.read(mine.path))
    with local_executor.here(context, mine.path) as executor:
        return answer_check.check(mine.lab, mine.drawing, given, executor, SingleRun, recorded)


def show(context: Context, mine: Folder, found: Sequence[QuestionVerdict]) -> None:
    """The verdicts as a table, and the points."""
    own = words.of(mine.lab.language)
    rows = [
        [each.question, escape(verdicts.short(each)), own.states[each.state], escape(one_line(each.say))]
        for each in found
    ]
    context.reporter.console.print(Sheet(mine.lab.course.title, list(own.columns), rows))
    context.reporter.console.print(f"\n{verdicts.points_in_words(found, own)}", soft_wrap=True)


class CheckedQuestion(Struct):
    """A verdict, as `--json` has it."""

    name: str
    state: State
    points: int | None
    most: int = field(name="of")
    answer: str
    hint: str


class CheckedFolder(Struct):
    """All verdicts on a folder, as `--json` has them. `teacher`: the points that a person gives."""

    lab: str
    student: str
    points: int
    most: int = field(name="of")
    teacher: int
    older: bool
    questions: tuple[CheckedQuestion, ...]
    strange: tuple[str, ...]


def _document(mine: Folder, found: Sequence[QuestionVerdict], strange: tuple[str, ...]) -> CheckedFolder:
    rows = tuple(
        CheckedQuestion(each.question, each.state, each.points, each.most, each.answer, each.say) for each in found
    )
    return CheckedFolder(mine.lab.name, mine.drawing.student, *verdicts.points_of(found), mine.older, rows, strange)
