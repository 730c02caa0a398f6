"""A grade as JSON for the teacher: all of it, truths and answers in words too."""

from __future__ import annotations

import dataclasses
from typing import Any

import orjson

from generator.course.grade import Grade

FILE = "grade.json"
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
_INTERNAL = ("own",)


def write(grade: Grade) -> bytes:
    """The bytes of a file."""
    return orjson.dumps(data(grade), option=_OPTIONS)


def data(grade: Grade) -> dict[str, Any]:
    """The same as data, with the sums."""
    plain = {name: each for name, each in dataclasses.asdict(grade).items() if name not in _INTERNAL}
    sums = {"points": grade.points, "of": grade.most, "by_teacher": grade.by_teacher, "confirmed": grade.confirmed}
    return {**plain, **sums}
