"""A lock on an open file or directory (flock(2)) that is waited for, but not for ever."""

from __future__ import annotations

import fcntl
import time

from labs.runtime.base import LabError

POLL_S = 0.01


def lock(descriptor: int, deadline: float, refusal: str) -> None:
    """Takes the lock, alone. LabError with `refusal` where somebody holds it beyond `deadline` (of time.monotonic)."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LabError(refusal) from None
            time.sleep(POLL_S)
