"""An event loop in a thread of its own, for callers that wait."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ewan.labs.runtime.base import LabError

Result = TypeVar("Result")


END_S = 3.0
"""The time for which programs that Ctrl-C ended are waited for: programs on machines are ended too."""


class Loop:
    """Runs coroutines for any thread. `stop` ends the coroutines that threads wait for, `close` the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ewan-ssh", daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._begun: set[asyncio.Task[None]] = set()
        self._stopped = False

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs it to its end and gives its result; Ctrl-C ends it too. LabError when `stop` ended it."""
        result: concurrent.futures.Future[Result] = concurrent.futures.Future()
        tasks: list[asyncio.Task[Result]] = []

        def begin() -> None:
            task = self._loop.create_task(work)
            tasks.append(task)
            self._tasks.add(task)
            task.add_done_callback(lambda done: self._settle(result, done))
            if self._stopped:
                task.cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            return result.result()
        except BaseException:
            if not result.done():
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                concurrent.futures.wait([result], END_S)
            raise

    def _settle(self, result: concurrent.futures.Future[Result], done: asyncio.Task[Result]) -> None:
        self._tasks.discard(done)
        if done.cancelled():
            result.set_exception(LabError("stopped"))
        elif (error := done.exception()) is not None:
            result.set_exception(error)
        else:
            result.set_result(done.result())

    def soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function there, at once, and does not wait."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins it there and does not wait; it raises nothing."""

        def begin() -> None:
            task = self._loop.create_task(work)
            self._begun.add(task)
            task.add_done_callback(self._begun.discard)

        self._loop.call_soon_threadsafe(begin)

    def stop(self, stopped: bool = True) -> None:
        """Ends the coroutines that threads wait for, and later ones at once; `stopped` False: later ones run again."""

        def apply() -> None:
            self._stopped = stopped
            for task in list(self._tasks) if stopped else []:
                task.cancel()

        self._loop.call_soon_threadsafe(apply)

    def close(self) -> None:
        """Ends the thread, and the coroutines that still run in it."""
        asyncio.run_coroutine_threadsafe(_ended(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _ended() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
