"""Which checks a student made: the lines that `ewan course check` leaves in the student's folder.

In: the folder. Out: the last of them, for what is handed in. They say how a student got to the answers; no point
depends on them, and whoever removes the file loses nothing else.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pydantic import ValidationError

from generator.course.folder import CHECKS
from generator.course.submission import MOST_CHECKS, Check
from labs.reading import read_bytes

MOST_BYTES = 64 << 20


def read(folder: Path) -> tuple[Check, ...]:
    """The last checks that were made, the oldest first; lines that are none are left out."""
    try:
        lines = read_bytes(folder / CHECKS, MOST_BYTES).splitlines()
    except OSError:
        return ()
    found = []
    for line in lines[-MOST_CHECKS:]:
        with contextlib.suppress(ValidationError):
            found.append(Check.model_validate_json(line))
    return tuple(found)
