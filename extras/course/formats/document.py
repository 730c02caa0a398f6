"""Grades as JSON for the teacher: all of it, truths and answers in words too.

In: grades. Out: the bytes of one document, whose `format` says which keys there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ewan.extras.course.grade import Grade, QuestionGrade, RunGrade
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct, field

FILE = "grades.json"


class GradeEntry(Struct):
    """A grade as `Grade` has it, with the sums."""

    file: str
    sha256: str
    status: str
    error: str
    lab: str
    student: str
    language: str
    questions: tuple[QuestionGrade, ...]
    runs: tuple[RunGrade, ...]
    checks: int
    latest: str
    replaced: str
    seconds: float
    notes: tuple[str, ...]
    points: int | float
    most: int | float = field(name="of")
    by_teacher: int | float
    confirmed: int


class GradesDocument(Document, tag="ewan-grades/1"):
    """grades.json."""

    grades: tuple[GradeEntry, ...]


def write(grades: Sequence[Grade]) -> bytes:
    """The bytes of the document."""
    entries = tuple(msgspec.convert(each, GradeEntry, from_attributes=True) for each in grades)
    return codec.ordered(GradesDocument(entries))
