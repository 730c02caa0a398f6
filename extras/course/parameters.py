"""The lab of each student: the value of every parameter, drawn from the student's number. Pure.

In: a lab's name and parameters, a student's number. Out: the values, as people write them and as numbers in SI base
units. Each is drawn by SHA-256 of the lab, the student and the parameter, so that it is the same everywhere, always.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.extras.course import amounts
from ewan.extras.course.fields import DrawnParameter
from ewan.extras.course.measures.base import Value
from ewan.labs.base.reading import one_line
from ewan.labs.base.units import UnitError
from ewan.labs.spec import DescriptionError

FORMAT = "ewan-course/1"
_STUDENT = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._@-]{0,62}[0-9A-Za-z])?")
MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class StudentParameters:
    """A student's parameters. `texts`: as they are written; `numbers`: in SI base units, words as they are."""

    student: str
    texts: Mapping[str, str]
    numbers: Mapping[str, Value]


def student(word: str) -> str:
    """A student's number in the one form that counts; DescriptionError for a word that is no number."""
    text = word.strip()
    if not _STUDENT.fullmatch(text):
        raise DescriptionError(
            f'student "{one_line(word, MOST_SHOWN)}": write a number, or letters and digits, 64 at most, perhaps with '
            '".", "-", "_" or "@" between, like "4711"'
        )
    return text.lower()


def drawn(lab: str, number: str, parameters: Mapping[str, DrawnParameter]) -> StudentParameters:
    """The values of all parameters of a lab for a student; DescriptionError for what is no student's number."""
    who = student(number)
    texts = {name: _one(lab, who, name, each.values) for name, each in parameters.items()}
    return StudentParameters(who, texts, {name: value_of(text) for name, text in texts.items()})


def _one(lab: str, student: str, name: str, values: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join((FORMAT, lab, student, name)).encode()).digest()
    return values[int.from_bytes(digest, "big") % len(values)]


def value_of(text: str | int) -> Value:
    """A parameter in an expression: an amount as a number in SI base units, anything else as the word that it is."""
    try:
        return float(amounts.read(text))
    except UnitError:
        return str(text)
