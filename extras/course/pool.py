"""Submissions shared out over processes, none of which the others depend on.

In: a function of a module, what each call is given, how long one may take. Out: what each call gives, as it ends, or
why it gave nothing: its process was killed, or it took too long. Such a process is replaced, and the others go on.
Ctrl-C, and whatever else ends the iteration, ends all of them, and the runs that are at work in them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from ewan.labs.base import interrupt, processes

Given = TypeVar("Given")
Found = TypeVar("Found")

ENDS_S = 15.0
"""For a worker that is asked to end: a run at work gets ten seconds to do so."""
STARTS_S = 60.0
"""For a process that is started: it imports what the function needs, which takes long where nothing is compiled yet."""


@dataclass(frozen=True, slots=True)
class LostCall:
    """Why a call gave nothing."""

    why: str


@dataclass(slots=True)
class _Worker:
    """A pool of one process, so that one that dies breaks no other, and the call that the process is at work on."""

    pool: ProcessPoolExecutor = field(default_factory=lambda: processes.workers(1))
    process: BaseProcess | None = None
    index: int | None = None
    call: Future[Any] = field(default_factory=Future)
    ends_at: float = 0.0

    def give(self, function: Callable[[Any], Any], given: Any, index: int, longest_s: float) -> None:
        """Has it begin a call, whose time counts from when its process is ready for it."""

        def count(_ready: Future[None]) -> None:
            self.ends_at = time.monotonic() + longest_s

        self.index, self.ends_at = index, time.monotonic() + STARTS_S + longest_s
        others = multiprocessing.active_children()
        try:
            with interrupt.blocked():
                self.pool.submit(_ready, function).add_done_callback(count)
                self.call = self.pool.submit(_call, function, given)
        except BrokenProcessPool as error:  # its process has just died
            self.call = Future()
            self.call.set_exception(error)
        if self.process is None:
            self.process = next((each for each in multiprocessing.active_children() if each not in others), None)

    @property
    def ended(self) -> bool:
        """Return whether a call that it was given has ended, or is to end."""
        return self.index is not None and (self.call.done() or time.monotonic() > self.ends_at)

    def lost(self) -> LostCall | None:
        """Why an ended call gave nothing; its process has ended then."""
        if not self.call.done():
            _end([self])
            return LostCall("it took too long")
        if isinstance(self.call.exception(), BrokenProcessPool | KeyboardInterrupt):
            _end([self])
            return LostCall(f"the process that graded it was killed ({_ending(self.process)})")
        return None


def each(
    function: Callable[[Given], Found], given: Sequence[Given], at_once: int, longest_s: float
) -> Iterator[tuple[int, Found | LostCall]]:
    """The index of each in `given` with what `function` gives, in the order in which they end. An exception of the
    function is raised here. All that goes in and comes out can be pickled."""
    todo = deque(range(len(given)))
    workers: list[_Worker] = []

    def fill() -> None:
        workers.extend(_Worker() for _ in range(min(at_once - len(workers), len(todo))))
        for worker in workers:
            if todo and worker.index is None:
                index = todo.popleft()
                worker.give(function, given[index], index, longest_s)

    try:
        fill()
        while busy := [worker for worker in workers if worker.index is not None]:
            wait([worker.call for worker in busy], 1.0, FIRST_COMPLETED)
            for worker in busy:
                if worker.index is None or not worker.ended:
                    continue
                index, found = worker.index, worker.lost()
                if found is not None:
                    workers.remove(worker)
                else:
                    found = worker.call.result()
                worker.index = None
                fill()
                yield index, found
    finally:
        _end(workers)


def _end(workers: Sequence[_Worker]) -> None:
    """Ends processes: those at work as Ctrl-C does, so that their runs end with them, and by force if they do not."""
    busy = [(each.call, each.process) for each in workers if each.process is not None and not each.call.done()]
    for _, process in busy:
        assert process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
    wait([call for call, _ in busy], ENDS_S)
    for call, process in busy:
        if not call.done():
            process.kill()
    for worker in workers:
        worker.pool.shutdown()


def _ready(_function: Callable[[Any], Any]) -> None:
    """Ends when the process has imported what the function needs."""


def _call(function: Callable[[Any], Any], given: Any) -> Any:
    """Calls it in a worker. Ctrl-C is a KeyboardInterrupt meanwhile, and ends the process without words before it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return function(given)
    finally:
        signal.signal(signal.SIGINT, before)


def _ending(process: BaseProcess | None) -> str:
    """Return the end of a process in words; None: at its start."""
    status = None if process is None else process.exitcode
    if status is None:
        return "at its start"
    return f"status {status}" if status >= 0 else signal.Signals(-status).name
