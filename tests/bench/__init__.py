"""`make bench`: measures this machine's performance, each value beside a reference in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable


def timed(action: Callable[[], object]) -> float:
    """Seconds of wall time that something takes."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun
