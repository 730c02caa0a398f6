"""A CPU for each run of the virtual clock.

The virtual kernel and the programs in it are processes that take turns: on one CPU a turn costs half of what it costs
across two. In: the CPUs that this process may use. Out: one that no other run holds, whoever started that; a name in
the abstract namespace of Unix sockets stands for each, so that it is free again however a run ends, and nothing is
written anywhere.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved() -> Iterator[int | None]:
    """None where all are taken: then the host may decide."""
    for cpu in sorted(os.sched_getaffinity(0)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
            try:
                holder.bind(f"\0ewan-virtual-cpu-{cpu}")
            except OSError:
                continue
            yield cpu
            return
    yield None
