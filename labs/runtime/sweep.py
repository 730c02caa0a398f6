"""Many independent runs of the virtual clock on all cores.

In: jobs, each a call that runs one and can be stopped. Out: their results, in order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from ewan.labs.runtime import cpu
from ewan.labs.runtime.cpu_shares import Share

Result = TypeVar("Result")
LOOKS_S = 0.2
"""The interval at which the main thread looks for signals. Linux may hand a signal to any thread, as it does in a
process that was stopped (Ctrl-Z), and Python then does not wake the main thread, although only that thread can answer
it."""


def sweep(jobs: Iterable[Callable[[threading.Event], Result]], workers: int | None = None) -> list[Result]:
    """The results of all jobs in their order, as many at once as this process has CPUs on which no link spins, and as
    leave room for other users (`sharing`). Each is asked for when its turn comes, so that many need no memory while
    they wait.

    `lambda stop: runtime.run(plan, program, directory, stop)` is a job. The first error, and Ctrl-C, stop those that
    run, start none of those that wait, and are raised when all have ended.
    """
    stop, turn, asked_all = threading.Event(), threading.Lock(), threading.Event()
    waiting = enumerate(jobs)
    results: dict[int, Result] = {}

    def work(share: Share, first: bool) -> None:
        while not stop.is_set():
            with share.place(asked_all, first) as there:
                if not there:
                    return
                with turn:
                    number, job = next(waiting, (0, None))
                if job is None:
                    asked_all.set()
                    return
                results[number] = job(stop)

    at_once = workers or len(cpu.free())
    with Share().held() as share, ThreadPoolExecutor(at_once) as pool:
        try:
            futures = [pool.submit(work, share, number == 0) for number in range(at_once)]
            done, others = set[Future[None]](), set(futures)
            while others and not any(future.exception() for future in done):
                done, others = wait(futures, LOOKS_S, FIRST_EXCEPTION)
            for future in done:
                if (error := future.exception()) is not None:
                    raise error
        finally:
            stop.set()
            asked_all.set()
    return [results[number] for number in sorted(results)]
