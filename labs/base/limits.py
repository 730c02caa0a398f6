"""Checks the limits that a shell sets for its programs (ulimit) against the least values with which `ewan` works.

In: the limits of this process. Out: one line and exit status 2 where one is too low, before the parts are imported
that end without words there: without address space a library's threads cannot start, without stack the interpreter
dies, and without descriptors an error names the wrong cause. A soft limit is raised where the hard one lets it.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator

MIB = 1 << 20
THREADS_BYTES = 64 * MIB
"""The address space for the threads of each CPU."""


def _least() -> dict[str, tuple[int, int, str, int, str]]:
    """By the letter of ulimit: which limit, the least, what it limits, ulimit's unit, and that unit's name."""
    space = 2048 * MIB + THREADS_BYTES * len(os.sched_getaffinity(0))
    return {
        "v": (resource.RLIMIT_AS, space, "address space", 1024, " kB"),
        "s": (resource.RLIMIT_STACK, MIB, "stack", 1024, " kB"),
        "n": (resource.RLIMIT_NOFILE, 64, "open files", 1, ""),
    }


def check() -> None:
    """Ends the process with status 2 and a line where a limit is too low."""
    for line in too_low():
        sys.stderr.write(f"ewan: {line}\n")
        sys.exit(2)


def too_low() -> Iterator[str]:
    """A line for each limit that is too low and that this process may not raise."""
    for letter, (number, least, what, unit, name) in _least().items():
        soft, hard = resource.getrlimit(number)
        if soft == resource.RLIM_INFINITY or soft >= least:
            continue
        if hard == resource.RLIM_INFINITY or hard >= least:
            resource.setrlimit(number, (least, hard))
            continue
        yield (
            f"{what}: {soft // unit}{name} are allowed here, and {least // unit}{name} are needed: "
            f"raise the limit (ulimit -{letter} {least // unit})"
        )
