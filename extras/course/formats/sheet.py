"""All grades as a table (CSV) for the teacher: a line for each submission.

In: grades. Out: text. What students wrote is in cells, and a spreadsheet would take a cell that begins with = or + for
a formula: such cells begin with an apostrophe here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from ewan.extras.course.formats import wording
from ewan.extras.course.grade import Grade

COLUMNS = (
    "student",
    "lab",
    "state",
    "points",
    "of",
    "by the teacher",
    "right",
    "close",
    "wrong",
    "missing",
    "unreadable",
    "runs confirmed",
    "runs not confirmed",
    "why not",
    "checks",
    "last seen",
    "to be looked at",
    "answers in words",
    "predictions",
    "file",
)
MOST_CELL = 30_000
"""Letters: spreadsheets cut longer ones off at 32767."""
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?")


def text(grades: Sequence[Grade]) -> str:
    """The table, sorted by student and lab."""
    result = io.StringIO()
    writer = csv.writer(result, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in sorted(grades, key=lambda each: (each.student == "", each.student, each.lab, each.file)):
        writer.writerow(cell(value) for value in _row(each))
    return result.getvalue()


def cell(value: str) -> str:
    """A cell that no spreadsheet executes."""
    value = "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in value)[:MOST_CELL]
    return f"'{value}" if _FORMULA.match(value) and not _NUMBER.fullmatch(value) else value


def _row(grade: Grade) -> list[str]:
    graded = grade.status == "graded"
    looked_at = [*([grade.error] if grade.error else []), *grade.notes]
    numbers = [
        *(wording.amount(value) for value in (grade.points, grade.most, grade.by_teacher)),
        *(str(grade.count(verdict)) for verdict in ("right", "close", "wrong", "missing", "unreadable")),
        str(grade.confirmed),
        str(len(grade.runs) - grade.confirmed),
        "; ".join(f"{reason}: {count}" for reason, count in wording.not_confirmed(grade).items()),
        str(grade.checks),
        grade.latest,
    ]
    words = [f"{each.name}: {each.answer}" for each in grade.questions if each.kind == "words" and each.answer]
    predicted = [f"{each.name}: {each.answer}" for each in grade.questions if each.verdict == "predicted"]
    return [
        grade.student,
        grade.lab,
        "replaced" if grade.replaced else grade.status,
        *(numbers if graded else [""] * len(numbers)),
        "; ".join(looked_at),
        "\n".join(words),
        "\n".join(predicted),
        grade.file,
    ]
