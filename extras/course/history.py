"""The checks that a student made: a line of `checks.jsonl` in the student's folder for each.

In: verdicts as they are given. Out: the last of them, for what is handed in, and how many there were. It says how a
student got to the answers; no point depends on it, and whoever removes the file loses nothing else. Each line holds the
digest of the line before it, and `course.json` holds how many there are: lines that were taken out, or a file that was
cut, are seen. Whoever knows how that is computed can write another journal: it is no proof.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ewan.experiments.engine.unit import now
from ewan.extras.course import folder as folders
from ewan.extras.course.submission import MOST_CHECKS, CheckJournal, CheckRecord
from ewan.labs.base import codec, writing
from ewan.labs.base.reading import read_bytes
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.locks import is_there, lock

FILE = "checks.jsonl"
MOST_BYTES = 16 << 20
WAIT_S = 5.0
"""For another check of the same folder to be noted."""
_UNNOTED = "this check is not noted"


def add(folder: Path, verdicts: Mapping[str, str]) -> None:
    """Adds a check that was made now: the verdict on each question, as a word.

    LabError where that cannot be written: the folder is then what it was before.
    """
    path = folder / FILE
    try:
        with writing.journal(path) as descriptor:
            lock(descriptor, time.monotonic() + WAIT_S, f"{path}: another check is noted there: {_UNNOTED}")
            if is_there(descriptor, path):
                _add(folder, path, descriptor, verdicts)
                return
    except OSError as error:
        raise LabError(f"{writing.trouble(error, path, 'check in a folder where you may write')}: {_UNNOTED}") from None
    add(folder, verdicts)


def _add(folder: Path, path: Path, descriptor: int, verdicts: Mapping[str, str]) -> None:
    there = read(folder)
    before = there[-1] if there else None
    count = max(before.number if before else 0, len(there), folders.noted(folder))
    made = CheckRecord(
        at=now(), verdicts=dict(verdicts), number=count + 1, before="" if before is None else before.digest
    )
    size = os.fstat(descriptor).st_size
    try:
        writing.add_line(path, descriptor, codec.line(made))
        folders.note(folder, made.number, made.digest)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
            if not size:
                path.unlink()
        raise


def read(folder: Path) -> tuple[CheckRecord, ...]:
    """The last checks that were made, the oldest first; lines that are none are left out."""
    try:
        lines = read_bytes(folder / FILE, MOST_BYTES).splitlines()
    except OSError:
        return ()
    found = []
    for line in lines[-MOST_CHECKS:]:
        with contextlib.suppress(ValueError):
            found.append(codec.decode(CheckRecord, line, ""))
    return tuple(found)


def missing(checks: Sequence[CheckRecord], journal: CheckJournal) -> str:
    """Return the parts that a journal lacks, in words; empty where nothing is missing."""
    made = max(journal.checks, *(each.number for each in checks), 0)
    if not made:  # an older version made all of them, and did not count
        return ""
    whole = len(checks) in (made, MOST_CHECKS) and all(
        (later.number, later.before) == (each.number + 1, each.digest) or not each.number
        for each, later in itertools.pairwise(checks)
    )
    # A check that was interrupted is in the journal, and not yet in the folder's record.
    last = next((each for each in checks if each.number == journal.checks), None)
    if whole and (last.digest if last else "") == journal.last:
        return ""
    return f"the journal of checks was changed: {len(checks)} of {made} are in it"
