"""The one handler of the signals that ask a command to end: Ctrl-C (SIGINT), SIGTERM and SIGHUP, at any instant.

Before a command works and after it, such a signal ends the process at once and without words. While it works
(`heeded`), the first one raises `Interrupted` once and later ones wait for the end; in a part that must not be left
half done (`deferred`) it is raised where that part asks for it, or at its end. What a command has made by then is in
`left` until it is complete, so that the line that tells of the end can name it. In: those signals. Out: that exception,
and in the end the death by that signal which a shell expects (status 130 or 143).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_S = 0.01
"""Between an exception that was lost, in a function that Python calls where none can be raised, and the next one."""

left: dict[str, Callable[[], str]] = {}
"""Things that the command has made and perhaps not completed, or not shown yet: a name → the line about it, which is
empty if the thing is gone or empty."""


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end. `number`: which."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _State:
    """The state of signals in this process; only the main thread handles signals."""

    came: int | None = None
    """The first signal since the command began to work."""
    raised = False
    """It has been raised, or answered: nothing raises it any more."""
    working = False
    parts = 0
    """The number of parts at work, one in the other, that must not be left half done."""
    pass_on: Callable[[int], None] | None = None


_state = _State()


def begin() -> None:
    """For the program `ewan`, before it imports anything that takes time: signals that came meanwhile count now."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as in the background, or under nohup: it stays so
            signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def block() -> None:
    """Signals wait until `begin` is called, in this process or in a program that takes its place."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


@contextmanager
def blocked() -> Iterator[None]:
    """Processes that are started meanwhile have signals wait until they call `begin`, or set handlers of their own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(program: Callable[[], Any]) -> None:
    """Calls a program, which ends by SystemExit. Where its status says that a signal ended it, the process dies of that
    signal in the end: a shell that sees no more than a status goes on with the next command of a script."""
    number: int | None = None

    def die() -> None:
        if number is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            _end(number, None)

    atexit.register(die)  # first, and so called last
    try:
        program()
    except SystemExit as ended:
        if _state.came is not None and ended.code == 128 + _state.came:
            number = _state.came
        raise


@contextmanager
def heeded() -> Iterator[None]:
    """While a command works. In another thread, and within another such context, it changes nothing."""
    if _state.working or threading.current_thread() is not threading.main_thread():
        yield
        return
    _state.came, _state.raised, _state.working = None, False, True
    left.clear()
    hook, sys.unraisablehook = sys.unraisablehook, _lost
    # Set also where it is ours: polars puts one in Python's place that has the kernel restart waiting calls.
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, _note)
        yield
    finally:
        _state.working = False
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


@contextmanager
def deferred(pass_on: Callable[[int], None] | None = None) -> Iterator[Callable[[], None]]:
    """A part that must not be left half done. Gives a function that raises `Interrupted` if a signal came and was not
    answered; else the end of the outermost such part does.

    `pass_on` gets all signals but Ctrl-C, which the terminal sends to every process itself; with it, the end raises
    nothing. Python hands signals to the main thread: in others nothing is raised.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    with heeded():
        before = _state.pass_on
        _state.parts += 1
        try:
            _state.pass_on = pass_on or before
            yield _check
        finally:
            if pass_on is not None and _state.came is not None:
                _state.raised = True
            _state.pass_on = before
            _state.parts -= 1
        if not _state.parts:
            _check()


def came() -> int | None:
    """The signal that asked the command to end, if one did."""
    return _state.came


def what_is_left(said: str) -> list[str]:
    """The lines of `left` whose names `said` does not contain; entries without words are omitted."""
    words = [tell() for name, tell in left.items() if name not in said]
    return [each for each in words if each]


def _check() -> None:
    if _state.came is not None and not _state.raised:
        _state.raised = True
        raise Interrupted(_state.came)


def _note(number: int, _frame: FrameType | None) -> None:
    if _state.came is None:
        _state.came = number
    if _state.pass_on is not None and number != signal.SIGINT:
        _state.pass_on(number)
    if not _state.parts:
        _check()


def _end(number: int, _frame: FrameType | None) -> None:
    """The process ends at once, as a program does that has no handler."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _lost(unraisable: sys.UnraisableHookArgs) -> None:
    """An exception where none can be raised, as in `__del__`: ours is raised once more; others are shown."""
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)
        return
    number = unraisable.exc_value.number

    def again() -> None:
        _state.raised = False
        os.kill(os.getpid(), number)

    timer = threading.Timer(AGAIN_S, again)
    timer.daemon = True
    timer.start()
