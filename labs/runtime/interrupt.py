"""Ctrl-C and its like at points where they do no harm, instead of between starting a process and knowing of it.

In: the signals that ask a command to end. Out: the exception that they mean, when the command asks for it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heeded() -> None:
    """Ctrl-C ends waiting calls again: polars puts a handler in Python's place that has the kernel restart them."""
    signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))


@contextmanager
def deferred(pass_on: Callable[[int], None] | None = None) -> Iterator[Callable[[], None]]:
    """Gives a function that raises what came since: KeyboardInterrupt, or SystemExit; nothing else raises it.

    What came and was not asked for is forgotten: then the work was done all the same. `pass_on` gets all but Ctrl-C,
    which the terminal sends to every process itself. Python hands signals to the main thread: nothing is done in
    others.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if pass_on is not None and number != signal.SIGINT:
            pass_on(number)

    def check() -> None:
        if signal.SIGINT in came:
            raise KeyboardInterrupt
        if came:
            raise SystemExit(128 + came[0])

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
