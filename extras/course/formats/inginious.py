"""Feedback of a task, as INGInious reads it.

In: a grade. Out: the bytes of `__feedback.json`, which INGInious' own commands write too (feedback-result,
feedback-grade, feedback-msg, feedback-custom); a task's `run` may as well call these with what is in it. The results
are those that the documentation of a run file names; texts are in reStructuredText. A task that takes the file that was
handed in has one problem, and INGInious shows nothing of others: so each question's verdict is in the text too. The
names of problems are the lab's questions.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from ewan.extras.course.formats import wording
from ewan.extras.course.grade import Grade, Question

FILE = "__feedback.json"
PERCENT = 100.0
_SPECIAL = re.compile(r"([\\`*_|<>\[\]{}:.#=~^+-])")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def write(grade: Grade) -> bytes:
    """The bytes of the feedback."""
    return orjson.dumps(feedback(grade), option=_OPTIONS)


def feedback(grade: Grade) -> dict[str, Any]:
    """The same as data. `grade` is in percent of the points that a machine gives."""
    share = grade.points / grade.most if grade.most else 0.0
    hints = [f"{each.name}: {wording.of_question(each, grade.language)}" for each in grade.questions]
    said = [wording.summary(grade), *filter(None, [wording.runs(grade)]), *hints]
    return {
        "result": _result(grade),
        "grade": round(PERCENT * share, 2),
        "text": "\n\n".join(plain(each) for each in said),
        "problems": {
            each.name: [_of(each), plain(wording.of_question(each, grade.language))] for each in grade.questions
        },
        "custom": {
            "lab": grade.lab,
            "student": grade.student,
            "points": round(grade.points, 4),
            "of": grade.most,
            "runs_confirmed": grade.confirmed,
            "runs": len(grade.runs),
        },
    }


def plain(text: str) -> str:
    """Text as reStructuredText that shows it as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _result(grade: Grade) -> str:
    if grade.status == "failed":
        return "crash"
    right = grade.status == "graded" and all(_of(each) == "success" for each in grade.questions)
    return "success" if right else "failed"


def _of(question: Question) -> str:
    return "success" if question.verdict in ("right", "teacher") else "failed"
