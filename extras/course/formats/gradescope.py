"""results.json, as Gradescope reads it of an autograder.

In: a grade. Out: the file's bytes. Keys and words are those of "Autograder Specifications", Output format
(https://gradescope-autograders.readthedocs.io/en/latest/specs/). What students see has no truth; notes for the teacher
are in a test that is hidden from students.
"""

from __future__ import annotations

from typing import Literal

from ewan.extras.course.formats import wording
from ewan.extras.course.grade import Grade, QuestionGrade, Status
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct

FILE = "results.json"
Visibility = Literal["visible", "hidden"]


class GradescopeTest(Struct, kw_only=True):
    """A line of the results. `number`, `tags`, `status`: of questions."""

    score: float
    max_score: float
    name: str
    number: str = ""
    output: str
    tags: tuple[str, ...] = ()
    visibility: Visibility
    status: Literal["passed", "failed"] | None = None


class GradescopeExtra(Struct):
    """Data that Gradescope keeps and does not show."""

    lab: str
    student: str
    status: Status
    runs_confirmed: int
    runs: int


class GradescopeResults(Struct, kw_only=True, omit_defaults=False):
    """results.json."""

    score: float
    execution_time: float
    output: str
    output_format: str = "text"
    test_output_format: str = "text"
    test_name_format: str = "text"
    visibility: Visibility = "visible"
    stdout_visibility: Visibility = "hidden"
    extra_data: GradescopeExtra
    tests: tuple[GradescopeTest, ...]


def write(grade: Grade) -> bytes:
    """The bytes of results.json."""
    return codec.ordered(results(grade))


def results(grade: Grade) -> GradescopeResults:
    """The same before it is written."""
    tests = [_test(number, each, grade.language) for number, each in enumerate(grade.questions, 1)]
    if said := wording.runs(grade):
        tests.append(_shown("Runs", said, "visible"))
    if grade.notes:
        tests.append(_shown("For the teacher", "\n".join(grade.notes), "hidden"))
    return GradescopeResults(
        score=round(grade.points, 4),
        execution_time=round(grade.seconds, 3),
        output=wording.summary(grade),
        extra_data=GradescopeExtra(grade.lab, grade.student, grade.status, grade.confirmed, len(grade.runs)),
        tests=tuple(tests),
    )


def _test(number: int, question: QuestionGrade, language: str) -> GradescopeTest:
    unmarked = question.by_teacher or question.prediction
    passed: Literal["passed", "failed"] = "passed" if question.verdict == "right" else "failed"
    return GradescopeTest(
        score=round(question.points, 4),
        max_score=0 if question.by_teacher else question.most,
        name=question.name,
        number=str(number),
        output=wording.of_question(question, language),
        tags=(question.verdict,),
        visibility="visible",
        status=None if unmarked else passed,
    )


def _shown(name: str, text: str, visibility: Visibility) -> GradescopeTest:
    return GradescopeTest(score=0, max_score=0, name=name, output=text, visibility=visibility)
