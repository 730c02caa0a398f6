"""results.json, as Gradescope reads it of an autograder.

In: a grade. Out: the file's bytes. Keys and words are those of "Autograder Specifications", Output format
(https://gradescope-autograders.readthedocs.io/en/latest/specs/). What students see has no truth; notes for the teacher
are in a test that is hidden from students.
"""

from __future__ import annotations

from typing import Any

import orjson

from ewan.extras.course.formats import wording
from ewan.extras.course.grade import Grade, Question

FILE = "results.json"
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def write(grade: Grade) -> bytes:
    """The bytes of results.json."""
    return orjson.dumps(results(grade), option=_OPTIONS)


def results(grade: Grade) -> dict[str, Any]:
    """The same as data."""
    tests = [_test(number, each, grade.language) for number, each in enumerate(grade.questions, 1)]
    if said := wording.runs(grade):
        tests.append(_shown("Runs", said, "visible"))
    if grade.notes:
        tests.append(_shown("For the teacher", "\n".join(grade.notes), "hidden"))
    return {
        "score": round(grade.points, 4),
        "execution_time": round(grade.seconds, 3),
        "output": wording.summary(grade),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "lab": grade.lab,
            "student": grade.student,
            "status": grade.status,
            "runs_confirmed": grade.confirmed,
            "runs": len(grade.runs),
        },
        "tests": tests,
    }


def _test(number: int, question: Question, language: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "score": round(question.points, 4),
        "max_score": 0 if question.by_teacher else question.most,
        "name": question.name,
        "number": str(number),
        "output": wording.of_question(question, language),
        "tags": [question.verdict],
        "visibility": "visible",
    }
    return (
        result if question.by_teacher else {**result, "status": "passed" if question.verdict == "right" else "failed"}
    )


def _shown(name: str, text: str, visibility: str) -> dict[str, Any]:
    return {"score": 0, "max_score": 0, "name": name, "output": text, "visibility": visibility}
