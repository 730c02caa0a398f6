"""All grades as a table (CSV) with one row a student, as gradebooks import it.

In: grades. Out: the bytes of the table: the sums, then of each lab its state, points and what the teacher gives. `of`
is the sum of all labs in the table, also of those that the student did not hand in. Of several submissions of a student
only the latest is in it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ewan.extras.course.formats import wording
from ewan.extras.course.formats.sheet import cell
from ewan.extras.course.grade import Grade

FILE = "students.csv"


def write(grades: Sequence[Grade]) -> bytes:
    """The bytes of the table, sorted by student."""
    those = [each for each in grades if each.student and not each.replaced]
    by_state = sorted(those, key=lambda each: each.status == "graded")
    counted = {(each.student, each.lab): each for each in by_state}  # a graded one before one that could not be
    most = {lab: max(each.most for each in counted.values() if each.lab == lab) for _, lab in counted if lab}
    labs = sorted(most)
    result = io.StringIO()
    writer = csv.writer(result, lineterminator="\n")
    heads = [f"{lab}: {word}" for lab in labs for word in ("state", "points", "of", "by the teacher")]
    writer.writerow(["student", "points", "of", "by the teacher", "to be looked at", *heads])
    for student in sorted({student for student, _ in counted}):
        mine = [counted.get((student, lab)) for lab in labs]
        graded = [each for each in mine if each is not None and each.status == "graded"]
        points, by_teacher = (sum(getattr(each, word) for each in graded) for word in ("points", "by_teacher"))
        sums = points, sum(most.values()), by_teacher
        looked_at = [f"{each.lab}: {line}" for each in those if each.student == student for line in _lines(each)]
        cells = [text for each in mine for text in _of(each)]
        row = [student, *map(wording.amount, sums), "; ".join(looked_at), *cells]
        writer.writerow(cell(value) for value in row)
    return result.getvalue().encode()


def _lines(grade: Grade) -> list[str]:
    """The lines that a teacher reads; the column of the state has that nothing was handed in."""
    wrong = [f"{grade.file}: {grade.error}"] if grade.status in ("refused", "failed") else []
    return [*wrong, *grade.notes]


def _of(grade: Grade | None) -> list[str]:
    if grade is None or grade.status != "graded":
        return ["" if grade is None else grade.status, "", "", ""]
    return [grade.status, *map(wording.amount, (grade.points, grade.most, grade.by_teacher))]
