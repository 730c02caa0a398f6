"""Grades as JSON for the teacher: all of it, truths and answers in words too.

In: grades. Out: the bytes of one document, whose `format` says which keys there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from ewan.extras.course.grade import Grade
from ewan.labs.base import codec

FILE = "grades.json"
FORMAT = "ewan-grades/1"
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_INTERNAL = ("own",)


def write(grades: Sequence[Grade]) -> bytes:
    """The bytes of the document."""
    return orjson.dumps({"format": FORMAT, "grades": [data(each) for each in grades]}, option=_OPTIONS)


def data(grade: Grade) -> dict[str, Any]:
    """A grade, with the sums."""
    plain = {name: each for name, each in codec.data_of(grade).items() if name not in _INTERNAL}
    sums = {"points": grade.points, "of": grade.most, "by_teacher": grade.by_teacher, "confirmed": grade.confirmed}
    return {**plain, **sums}
