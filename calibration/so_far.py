"""Keeps a partial certificate while a lab is measured, with the rows that are complete, for a reader who waits.

In: ways to make one. Out: it is made now and then, so that making it takes little of the time of measuring; it is kept
in a file that is gone when the whole certificate is there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from ewan.labs.base import writing
from ewan.labs.record import SO_FAR_FILE, Certificate, to_json

SHARE = 0.1
"""The largest share of the time that is spent on partial certificates."""


class PartialCertificateWriter:
    """`tell` gets a certificate; `now` tells seconds of a clock without steps."""

    def __init__(self, tell: Callable[[Certificate], None], now: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._now = tell, now
        self._next_s = now()

    def offer(self, make: Callable[[], Certificate]) -> None:
        """Makes a certificate and tells it, unless the last one took so long that it is too early."""
        begun = self._now()
        if begun < self._next_s:
            return
        self._tell(make())
        ended = self._now()
        self._next_s = ended + (ended - begun) * (1 / SHARE - 1)


def write(directory: Path) -> Callable[[Certificate], None]:
    """Keeps what is known in a directory; where there is no room, the measuring goes on all the same."""

    def keep(certificate: Certificate) -> None:
        with contextlib.suppress(OSError):
            writing.write(directory / SO_FAR_FILE, to_json(certificate))

    return keep


def forget(directory: Path) -> None:
    """Removes what was kept."""
    (directory / SO_FAR_FILE).unlink(missing_ok=True)
