"""A run's directory is for one virtual kernel at a time, also when one outlives its command for a moment.

In: a directory. Out: a lock on it, which the kernel's processes inherit and which ends with the last of them: a command
that was killed cannot wait for its kernel, and the kernel goes on writing until it has ended too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labs.runtime.locks import lock

WAIT_S = 10.0


@contextmanager
def occupied(directory: Path) -> Iterator[int]:
    """Gives the lock's descriptor, for children to hold it too. LabError where somebody else holds it for long."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        refusal = f"{directory}: another virtual lab is at work there: wait for its end"
        lock(descriptor, time.monotonic() + WAIT_S, refusal)
        yield descriptor
    finally:
        os.close(descriptor)
