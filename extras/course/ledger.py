"""The grades that are made already: a file beside the grades, from which an interrupted call goes on.

In: grades as they are made, each with the checksum of its submission and of what it was graded by. Out: a line of JSON
for each, written when it is there; and those lines again. A submission that was changed has another checksum, and so
has a lab or a version of this project that would grade otherwise: both are graded again. A line that was cut off by a
kill is none.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ewan.extras.course.grade import Grade
from ewan.labs.base import codec
from ewan.labs.base.codec import Document, replace
from ewan.labs.base.reading import read_bytes
from ewan.labs.base.writing import add_line, journal, trouble
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.locks import lock

ENDING = ".ledger"
MOST_BYTES = 1 << 30


class LedgerLine(Document, tag="ewan-grades/1"):
    """A line of the file. `basis`: what the grade follows from, beside the submission."""

    basis: str
    grade: Grade


class GradeLedger:
    """The file for one output, open for one grader at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._known: dict[tuple[str, str], Grade] = {}

    @contextlib.contextmanager
    def opened(self, again: bool = False) -> Iterator[GradeLedger]:
        """For as long as the grader is at work; `again`: nothing of what is in it counts.

        LabError where it cannot be written, or another grader is at work with it.
        """
        with contextlib.ExitStack() as stack:
            stack.callback(setattr, self, "_descriptor", -1)
            try:
                self._descriptor = stack.enter_context(journal(self.path, 0o600))
            except OSError as error:
                raise self._unwritable(error) from None
            lock(self._descriptor, time.monotonic(), f"{self.path}: another `ewan course grade` is at work with it")
            if again:
                os.ftruncate(self._descriptor, 0)
            self._read()
            yield self

    def find(self, file: str, sha256: str, basis: str) -> Grade | None:
        """The grade of a submission of these bytes, where it was graded by the same."""
        found = self._known.get((sha256, basis))
        return None if found is None else replace(found, file=file)

    def add(self, grade: Grade, basis: str) -> None:
        """Keeps a grade; LabError where the disk is full."""
        try:
            add_line(self.path, self._descriptor, codec.line(LedgerLine(basis, grade)))
        except OSError as error:
            raise self._unwritable(error) from None
        self._known[grade.sha256, basis] = grade

    def _unwritable(self, error: OSError) -> LabError:
        return LabError(trouble(error, self.path, "write --csv FILE where you may write"))

    def _read(self) -> None:
        content = read_bytes(self.path, MOST_BYTES)
        if content and not content.endswith(b"\n"):  # a kill cut the last line off: the next one begins anew
            os.write(self._descriptor, b"\n")
        for line in content.splitlines():
            with contextlib.suppress(ValueError):
                kept = codec.decode(LedgerLine, line, "")
                self._known[kept.grade.sha256, kept.basis] = kept.grade
