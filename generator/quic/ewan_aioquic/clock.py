"""Times of this program: ns from T0, a time of day that the environment has; without it T0 is the program's start."""

import os
import time

BEGUN_NS = time.time_ns() - int(os.environ.get("EWAN_T0_UNIX_NS") or time.time_ns())
OFFSET_NS = BEGUN_NS - time.monotonic_ns()
NS_PER_SECOND = 10**9


def now_ns() -> int:
    """ns from T0."""
    return time.monotonic_ns() + OFFSET_NS
