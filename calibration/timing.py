"""How long something takes, for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def timed(action: Callable[[], object]) -> float:
    """Seconds of wall time."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun
