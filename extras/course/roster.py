"""A list of students, and who of them handed in nothing; who handed in and is not on it.

In: a text file: a number a line, or a table (CSV) that has a column of them, as learning platforms export it. Out: the
numbers in their order; a line of its own for each student and lab that is missing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath

from ewan.extras.course import parameters
from ewan.extras.course.grade import Grade
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import MOST_TEXT, decoded, read_bytes
from ewan.labs.spec import DescriptionError

MOST_STUDENTS = 100_000
COLUMNS = (
    *("sis user id", "student number", "matriculation number", "matriculation", "matrikelnummer", "matrikelnr."),
    *("numéro d'étudiant", "id number", "id-nummer", "number", "sid", "student", "id"),
)
"""Headings of the column of numbers. Where a list has several of them, the first one of these counts."""
EMAILS = ("email", "e-mail", "email address", "e-mail address", "e-mail-adresse", "mail")
"""Names of a column of e-mail addresses."""


class RosterError(UserError):
    """Why a file is no list of students, in one line."""


def read(path: Path) -> list[str]:
    """The students of a file; RosterError where it cannot be read."""
    return list(addresses(path))


def addresses(path: Path) -> dict[str, str]:
    """The same with the e-mail address of each, in small letters; empty where the file does not have it."""
    try:
        text = decoded(read_bytes(path, MOST_TEXT))
    except OSError as error:
        raise RosterError(
            f"{path}: {error.strerror}: --students takes a text file, a student's number a line"
        ) from None
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise RosterError(f"{path}: there is no student in it: write a student's number a line")
    separator = max(",;\t", key=lines[0].count)
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=separator))
    heads = [head.strip().casefold() for head in rows[0]]
    column = next((heads.index(name) for name in COLUMNS if name in heads), None)
    email = next((heads.index(name) for name in EMAILS if name in heads), None)
    if column is None and len(heads) > 1:
        raise RosterError(f'{path}: no column is called "student", "number" or "id": call the column of the numbers so')
    result: dict[str, str] = {}
    for number, row in enumerate(rows[0 if column is None else 1 :], 1 if column is None else 2):
        try:
            student = parameters.student(_cell(row, column or 0))
        except DescriptionError as error:
            raise RosterError(f"{path}: row {number}: {error}") from None
        result[student] = "" if email is None else _cell(row, email).strip().lower()
    if len(result) > MOST_STUDENTS:
        raise RosterError(f"{path}: has more than {MOST_STUDENTS} students")
    return result


def _cell(row: Sequence[str], column: int) -> str:
    return row[column] if len(row) > column else ""


def held(grades: Sequence[Grade], students: Sequence[str], labs: Collection[str]) -> list[Grade]:
    """The grades, those of strangers noted, and a line for each student that is missing, of each lab."""
    known = frozenset(students)
    result = [
        each.noted(f"{each.student} is not on the list of students")
        if each.student and each.student not in known
        else each
        for each in grades
    ]
    handed_in = {(each.lab, each.student) for each in grades}
    refused = {_named(each): each for each in grades if each.status == "refused" and not each.student}
    missing = [
        _missing(lab, student, refused.get(f"{lab}-{student}"))
        for lab in sorted(labs)
        for student in students
        if (lab, student) not in handed_in
    ]
    return [*result, *missing]


def _named(grade: Grade) -> str:
    """The lab and the student that a file's name says, as `ewan course hand-in` writes them; a number that a browser
    puts behind them aside."""
    return re.sub(r"( ?\([0-9]+\))?\.zip$", "", PurePath(grade.file).name.casefold())


def _missing(lab: str, student: str, refused: Grade | None) -> Grade:
    """The line of who handed in nothing, or `refused`, which cannot be read."""
    if refused is None:
        return Grade(file="", status="missing", lab=lab, student=student, error="nothing was handed in")
    error, note = "nothing that can be read was handed in", f"{refused.file} {refused.error}"
    return Grade(file="", status="missing", lab=lab, student=student, error=error, notes=(note,))
