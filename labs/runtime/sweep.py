"""Many independent runs of the virtual clock on all cores.

In: jobs, each a call that runs one and can be told to stop. Out: their results, in order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from labs.runtime import cpu

Result = TypeVar("Result")


def sweep(jobs: Sequence[Callable[[threading.Event], Result]], workers: int | None = None) -> list[Result]:
    """The results of all jobs in their order, as many at once as this process has CPUs on which no link spins.

    `lambda stop: runtime.run(plan, program, directory, stop)` is a job. The first error, and Ctrl-C, stop those that
    run, start none of those that wait, and are raised when all have ended.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(workers or len(cpu.free())) as pool:
        futures = [pool.submit(job, stop) for job in jobs]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                if (error := future.exception()) is not None:
                    raise error
            return [future.result() for future in futures]
        finally:
            stop.set()
            for future in futures:
                future.cancel()
