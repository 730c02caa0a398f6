"""Standard output and error of a command, whatever they are: closed, full, in an encoding that lacks characters.

What is shown and cannot be written ends the command in one line with a status that is not 0; a reader that has gone
(`| head`) is no news, so there the line is left out. Messages are no result: what of them cannot be written is left
out, the work goes on, and the status says so at the end.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

LOST = 1
"""The exit status of a command that would have had 0."""


class OutputLostError(Exception):
    """Standard output takes no more; no OSError, so that it is not taken for a fault of another file."""

    def __init__(self, number: int) -> None:
        super().__init__("is closed" if number == errno.EBADF else os.strerror(number))
        self.number = number


class _Output(io.FileIO):
    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise OutputLostError(error.errno or 0) from None


class _Messages(io.FileIO):
    lost = False

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError:
            self.lost = True
            return memoryview(content).nbytes


def run(command: Callable[[], Any]) -> Any:
    """Calls `command`, which ends by SystemExit or returns; where tests have put streams in place, those stay."""
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:
        return command()
    output, messages = prepare()
    try:
        result = command()
        output.flush()
        status: Any = 0
    except OutputLostError as lost:
        result = None
        status = _ended(lost, output)
    except SystemExit as ended:
        result, status = None, ended.code
        try:
            output.flush()
        except OutputLostError as lost:
            status = _ended(lost, output, status)
    if messages.lost and not status:
        status = LOST
    if status:
        sys.exit(status)
    return result


def prepare() -> tuple[TextIO, _Messages]:
    """Puts our streams in place of Python's; a number that was closed is taken, or the next file would get it."""
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number; from 1 one cannot write, as from a closed one
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - Python's own
    messages = _Messages(2, "w", closefd=False)
    sys.stdout = sys.__stdout__ = _text(_Output(1, "w", closefd=False), sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(messages, sys.stderr, at_once=True)  # type: ignore[misc]
    return sys.stdout, messages


def _text(raw: io.FileIO, before: TextIO | None, at_once: bool = False) -> io.TextIOWrapper:
    encoding = "utf-8" if before is None else before.encoding
    lines = at_once or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="replace", line_buffering=lines)


def _ended(lost: OutputLostError, output: TextIO, status: Any = 0) -> Any:
    """The exit status, after saying what happened; what is still in the buffer goes nowhere, also when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    with contextlib.suppress(OutputLostError):
        output.flush()
    if lost.number != errno.EPIPE:
        print(f"ewan: standard output: {lost}: not all was shown, give it a place with room", file=sys.stderr)
    return status or LOST
