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
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, Generic, TypeVar

from ewan.labs.base import interrupt, processes

Given = TypeVar("Given")
Found = TypeVar("Found")

ENDS_S = 15.0
"""For a worker that is asked to end: a run at work gets ten seconds to do so."""
STARTS_S = 60.0
"""For a process that is started: it imports what the function needs, which takes long where nothing is compiled yet."""
BEGUN = "begun"
"""A worker's message before each call: the time of the call counts from here."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Why a call gave nothing."""

    why: str


@dataclass(slots=True)
class _Worker(Generic[Given, Found]):
    """A process, and what it is at work on."""

    process: multiprocessing.process.BaseProcess
    connection: Connection
    longest_s: float
    index: int | None = None
    ends_at: float = 0.0

    def give(self, index: int, given: Given) -> None:
        """Has it begin."""
        self.index, self.ends_at = index, time.monotonic() + STARTS_S + self.longest_s
        self.connection.send(given)

    def answer(self) -> tuple[Any, Exception | None] | Lost | None:
        """What it gave, or why it will give nothing; None: not yet."""
        try:
            while self.connection.poll():
                answer: tuple[Any, Exception | None] | str = self.connection.recv()
                if not isinstance(answer, str):
                    return answer
                self.ends_at = time.monotonic() + self.longest_s
        except (EOFError, ConnectionError):
            self.process.join(ENDS_S)
        if not self.process.is_alive():
            return Lost(f"the process that graded it was killed ({_ending(self.process.exitcode)})")
        return Lost("it took too long") if time.monotonic() > self.ends_at else None


def each(
    function: Callable[[Given], Found], given: Sequence[Given], at_once: int, longest_s: float
) -> Iterator[tuple[int, Found | Lost]]:
    """The index of each in `given` with what `function` gives, in the order in which they end. An exception of the
    function is raised here. All that goes in and comes out can be pickled."""
    context = multiprocessing.get_context("spawn")  # not forked: the threads of polars would not be there
    todo = deque(range(len(given)))
    workers: list[_Worker[Given, Found]] = []

    def started() -> _Worker[Given, Found]:
        mine, other = context.Pipe()
        process = context.Process(target=_work, args=(function, other), daemon=False)
        with interrupt.blocked():
            process.start()
        other.close()
        return _Worker(process, mine, longest_s)

    def fill() -> None:
        while todo and len(workers) < at_once:
            workers.append(started())
        for worker in workers:
            if todo and worker.index is None:
                index = todo.popleft()
                with contextlib.suppress(BrokenPipeError):  # it has just died: found below
                    worker.give(index, given[index])

    try:
        fill()
        while busy := [worker for worker in workers if worker.index is not None]:
            wait([*(worker.connection for worker in busy), *(worker.process.sentinel for worker in busy)], 1.0)
            for worker in busy:
                index, answer = worker.index, worker.answer()
                if answer is None or index is None:
                    continue
                if isinstance(answer, Lost):
                    workers.remove(worker)
                    _end([worker])
                    yield index, answer
                    continue
                found, error = answer
                if error is not None:
                    raise error
                worker.index = None
                fill()
                yield index, found
            fill()
    finally:
        _end(workers)


def _end(workers: Sequence[_Worker[Any, Any]]) -> None:
    """Ends processes: those at work as Ctrl-C does, so that their runs end with them, and by force if they do not."""
    for worker in workers:
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(worker.process.pid or 0, signal.SIGINT) if worker.process.is_alive() else None
    deadline = time.monotonic() + ENDS_S
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.connection.close()


def _work(function: Callable[[Any], Any], connection: Connection) -> None:
    """A worker's life. Ctrl-C ends what it is at, as a KeyboardInterrupt, and then it without words."""
    processes.begin()
    at_work = False

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        if at_work:
            raise KeyboardInterrupt
        os._exit(1)

    signal.signal(signal.SIGINT, interrupted)
    while True:
        try:
            given = connection.recv()
        except (EOFError, ConnectionError):
            return
        answer: tuple[Any, Exception | None]
        try:
            connection.send(BEGUN)
            at_work = True
            answer = function(given), None
        except KeyboardInterrupt:
            os._exit(1)
        except Exception as error:
            answer = None, error
        at_work = False
        connection.send(answer)


def _ending(status: int | None) -> str:
    """How a process ended, in words."""
    if status is None or status >= 0:
        return f"status {status}"
    return signal.Signals(-status).name
