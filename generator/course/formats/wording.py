"""What a student reads of a grade, the same in every form: no truth is in it, and nothing about other students."""

from __future__ import annotations

from collections import Counter

from generator.course import words
from generator.course.grade import NOT_CONFIRMED, TEACHER, Grade, Question


def of_question(question: Question, language: str) -> str:
    """A verdict in a line, in the student's language."""
    state = words.of(language).states[question.verdict]
    if question.verdict == TEACHER:
        state = f"{state} ({amount(question.most)})"
    return f"{state}: {question.say}" if question.say and question.verdict != "right" else state


def summary(grade: Grade) -> str:
    """The outcome in a line."""
    if grade.status != "graded":
        return f"Not graded: {grade.file} {grade.error}".strip()
    more = f"; your teacher gives up to {points(grade.by_teacher)} more" if grade.by_teacher else ""
    return f"{amount(grade.points)} of {points(grade.most)}{more}"


def runs(grade: Grade) -> str:
    """Which runs were confirmed, in a line; empty where none was handed in."""
    if not grade.runs:
        return ""
    why = not_confirmed(grade)
    more = "".join(f"; {count} not: {reason}" for reason, count in why.items())
    return f"{grade.confirmed} of {len(grade.runs)} runs were repeated, with the same bytes{more}"


def not_confirmed(grade: Grade) -> dict[str, int]:
    """How many runs were not, by reason."""
    return dict(Counter(each.said.removeprefix(NOT_CONFIRMED) for each in grade.runs if not each.confirmed))


def points(value: float) -> str:
    """`1 point`, `2.5 points`."""
    return f"{amount(value)} point{'' if value == 1 else 's'}"


def amount(value: float) -> str:
    """Points to two digits after the point at most."""
    return f"{round(value, 2):g}"
