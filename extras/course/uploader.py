"""Who uploaded a submission to Gradescope, held against whose submission it is.

In: submission_metadata.json, which Gradescope puts beside the directory of what was uploaded (keys as in "Autograder
Specifications", Submission Metadata), and e-mail addresses of the list of students. Out: the grades; a submission that
another person uploaded is refused, and where the uploader is not known, a note says so to the teacher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from ewan.extras.course.grade import Grade
from ewan.labs.base.reading import one_line, read_bytes

FILE = "submission_metadata.json"
MOST_BYTES = 4 << 20
MOST_LETTERS = 80


@dataclass(frozen=True, slots=True)
class Uploader:
    """A user of Gradescope. `marks`: all by which a student may be called, in small letters."""

    name: str
    email: str
    marks: frozenset[str]

    def __str__(self) -> str:
        return one_line(f"{self.name} ({self.email})" if self.email else self.name, MOST_LETTERS)


def found(submissions: Path) -> list[Uploader]:
    """Those who uploaded what is in a directory, several where a group did; none where there is no such file."""
    try:
        told = orjson.loads(read_bytes(submissions.absolute().parent / FILE, MOST_BYTES))
    except (OSError, ValueError):
        return []
    users = told.get("users") if isinstance(told, dict) else None
    return [_of(each) for each in users if isinstance(each, dict)] if isinstance(users, list) else []


def _of(user: Mapping[str, str | int | None]) -> Uploader:
    email = str(user.get("email") or "").strip().lower()
    marks = {str(user.get(key) or "").strip().lower() for key in ("id", "sid", "name", "email")}
    return Uploader(str(user.get("name") or "somebody"), email, frozenset({*marks, email.partition("@")[0]} - {""}))


def held(grades: Sequence[Grade], uploaders: Sequence[Uploader], numbers: Mapping[str, str]) -> list[Grade]:
    """The grades; `numbers`: of students by their e-mail addresses, in small letters."""
    return [_held(each, uploaders, numbers) if uploaders and each.student else each for each in grades]


def _held(grade: Grade, uploaders: Sequence[Uploader], numbers: Mapping[str, str]) -> Grade:
    known = {numbers[each.email] for each in uploaders if each.email in numbers}
    if grade.student in known or any(grade.student in each.marks for each in uploaders):
        return grade
    who = _listed(uploaders)
    if known or "@" in grade.student:
        error = f"was uploaded by {who}, and it is the submission of another student"
        return Grade(
            file=grade.file, sha256=grade.sha256, status="refused", error=error, lab=grade.lab, student=grade.student
        )
    return grade.noted(
        f"uploaded by {who}: is that {grade.student}? --students FILE with a column of e-mail addresses would tell"
    )


def _listed(uploaders: Iterable[Uploader]) -> str:
    return one_line(", ".join(map(str, uploaders)), 2 * MOST_LETTERS)
