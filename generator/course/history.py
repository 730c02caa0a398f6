"""Which checks a student made: a line of `checks.jsonl` in the student's folder for each.

In: verdicts as they are given. Out: the last of them, for what is handed in. It says how a student got to the answers;
no point depends on it, and whoever removes the file loses nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import orjson
from pydantic import ValidationError

from generator.course.submission import MOST_CHECKS, Check
from generator.engine.unit import now
from labs.reading import read_bytes
from labs.writing import append

FILE = "checks.jsonl"
MOST_BYTES = 16 << 20


def add(folder: Path, verdicts: Mapping[str, str]) -> None:
    """Adds a check that was made now: the verdict on each question, as a word. Where that cannot be written it is not:
    the student's own check goes on."""
    line = orjson.dumps({"at": now(), "verdicts": dict(verdicts)}, option=orjson.OPT_APPEND_NEWLINE)
    with contextlib.suppress(OSError), append(folder / FILE) as file:
        file.write(line)


def read(folder: Path) -> tuple[Check, ...]:
    """The last checks that were made, the oldest first; lines that are none are left out."""
    try:
        lines = read_bytes(folder / FILE, MOST_BYTES).splitlines()
    except OSError:
        return ()
    found = []
    for line in lines[-MOST_CHECKS:]:
        with contextlib.suppress(ValidationError):
            found.append(Check.model_validate_json(line))
    return tuple(found)
