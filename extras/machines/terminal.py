"""A program on another machine, on this terminal: raw mode, the size of the window, signals; or on pipes and files."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import threading
import tty
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType

import asyncssh

from ewan.extras.machines.loop import Loop
from ewan.extras.machines.processes import RemoteCommand, RemoteProgram, TerminalOptions
from ewan.labs.runtime.base import LabError

_CHUNK = 1 << 16
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def attached(who: str, loop: Loop, connection: asyncssh.SSHClientConnection, command: RemoteCommand) -> int:
    """Runs it until it ends; its exit status, 128 + the signal's number. LabError when the connection is lost.

    It has a terminal there when all three of our streams are one. Signals that we get are passed on to it; a second
    Ctrl-C does not wait for it any more.
    """
    interactive = all(os.isatty(stream) for stream in (0, 1, 2))
    terminal: TerminalOptions = {"term_type": os.environ.get("TERM", "dumb"), "term_size": _size()}
    running = loop.call(RemoteProgram.start(who, connection, command, terminal if interactive else None))
    end, ended = os.pipe()
    feeding = threading.Thread(target=_feed, args=(loop, running, end), name="ewan-input", daemon=True)
    try:
        with _raw() if interactive else contextlib.nullcontext(), _signals(loop, running, interactive):
            feeding.start()
            return loop.call(_shown(running))
    finally:
        os.close(ended)
        feeding.join()
        os.close(end)
        loop.call(running.close())


def _size() -> tuple[int, int, int, int]:
    """Columns, rows, and both in pixels."""
    try:
        rows, columns, wide, high = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return 80, 24, 0, 0
    return columns, rows, wide, high


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Every key is the program's; the terminal is as it was afterwards."""
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _signals(loop: Loop, running: RemoteProgram, interactive: bool) -> Iterator[None]:
    """Passes the signals of this process on to the program. Python hands signals to the main thread: other threads pass
    none on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = 0

    def pass_on(number: int, _frame: FrameType | None) -> None:
        nonlocal came
        came += number == signal.SIGINT
        if came > 1:
            raise KeyboardInterrupt
        loop.start(running.send_signal(number))

    def resized(_number: int, _frame: FrameType | None) -> None:
        loop.soon(running.resized, *_size())

    handlers = dict.fromkeys(_PASSED_ON, pass_on) | ({signal.SIGWINCH: resized} if interactive else {})
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _feed(loop: Loop, running: RemoteProgram, end: int) -> None:
    """Our standard input is its own, until it ends, or `end` does."""
    with contextlib.suppress(LabError):
        while True:
            ready, _, _ = select.select([0, end], [], [])
            if end in ready:
                return
            try:
                data = os.read(0, _CHUNK)
            except OSError:
                data = b""
            if not data:
                loop.call(running.end_input())
                return
            loop.call(running.write(data))


async def _shown(running: RemoteProgram) -> int:
    """Copy the program's output to ours; return its exit status."""

    async def copy(source: Callable[[], Awaitable[bytes]], stream: int) -> None:
        while data := await source():
            while data:
                # It may wait for a terminal that is stopped.
                data = data[await asyncio.to_thread(os.write, stream, data) :]

    copies = [asyncio.ensure_future(copy(running.read, 1)), asyncio.ensure_future(copy(running.next_error, 2))]
    try:
        await asyncio.gather(*copies)
    except BrokenPipeError:
        # Its output has no reader: it gets the signal that it would get here.
        return 128 + signal.SIGPIPE
    finally:
        for task in copies:
            task.cancel()
    code = await running.code()
    return 128 - code if code < 0 else code
