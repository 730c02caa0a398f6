"""The text of a grade for the student, the same in every form: no truth is in it, and nothing about other students."""

from __future__ import annotations

from collections import Counter

from ewan.extras.course import words
from ewan.extras.course.grade import NOT_CONFIRMED, TEACHER, Grade, QuestionGrade


def of_question(question: QuestionGrade, language: str) -> str:
    """A verdict in a line, in the student's language."""
    state = words.of(language).states[question.verdict]
    if question.verdict == TEACHER:
        state = f"{state} ({amount(question.most)})"
    return f"{state}: {question.say}" if question.say and question.verdict != "right" else state


def summary(grade: Grade) -> str:
    """The outcome in a line."""
    own = words.of(grade.language)
    if grade.status != "graded":
        return f"{own.not_graded}: {grade.file} {grade.error}".strip()
    more = own.left.format(left=amount(grade.by_teacher)) if grade.by_teacher else ""
    return own.points.format(reached=amount(grade.points), of=amount(grade.most)) + more


def runs(grade: Grade) -> str:
    """Return a line about the confirmed runs; empty where none was handed in."""
    if not grade.runs:
        return ""
    own = words.of(grade.language)
    more = "".join(
        own.not_repeated.format(count=count, reason=own.reasons.get(reason, reason))
        for reason, count in not_confirmed(grade).items()
    )
    return own.repeated.format(confirmed=grade.confirmed, runs=len(grade.runs)) + more


def not_confirmed(grade: Grade) -> dict[str, int]:
    """Return the number of runs that were not confirmed, by reason."""
    return dict(Counter(each.said.removeprefix(NOT_CONFIRMED) for each in grade.runs if not each.confirmed))


def amount(value: float) -> str:
    """Points to two digits after the point at most."""
    return f"{round(value, 2):g}"
