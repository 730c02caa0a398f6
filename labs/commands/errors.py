"""Errors of commands: one line each, and the exit status that goes with it."""

from __future__ import annotations

import errno
import functools
import signal
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import click

from ewan.labs.base import interrupt
from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import one_line, shortened
from ewan.labs.base.streams import OutputLostError

EXIT_STATUSES = {
    "0": ("the command did all of its work, and every measured lab is within its tolerances", ""),
    "1": (
        "the work ended, and its result is incomplete or outside a tolerance",
        "a lab that did not pass its verification, a run that failed, two experiments that differ",
    ),
    "2": (
        "the input cannot be used; one line on standard error says what is wrong, where, and what to write instead",
        "an unknown key, a rate without a unit, a lab that is not up, a full disk",
    ),
    "128 + N": ("signal N ended the command after it cleaned up", "130 for Ctrl-C, 143 for SIGTERM"),
}
"""The exit statuses of all commands: their meaning, and cases of each."""

P = ParamSpec("P")
R = TypeVar("R")


class Refused(click.ClickException):
    """An error that the user can put right: one line, exit status 2, or that of a program which a signal ended."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        number = interrupt.came()
        super().__init__(message if number is None else "; ".join([message, *interrupt.what_is_left(message)]))
        if number is not None:
            self.ended_by(number)

    def ended_by(self, number: int) -> None:
        """The exit status is that of a program which this signal ended."""
        self.exit_code = 128 + number  # type: ignore[misc]  # click has it as the class's

    def show(self, file: Any = None) -> None:
        """Writes the line to standard error; `file`, which click passes, is not used."""
        click.echo(f"ewan: {shortened(one_line(self.message))}", err=True)


class Incomplete(Refused):
    """An error for measurements that are incomplete: one line, exit status 1."""

    exit_code = 1


def _interrupted() -> Refused:
    ended = Refused("interrupted")
    ended.ended_by(interrupt.came() or signal.SIGINT)
    return ended


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Turns the errors that a user can put right into one line with exit status 2, and a signal that ends the command
    into one with the status of that (`ewan.labs.base.interrupt`)."""

    @functools.wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        with interrupt.heeded():
            try:
                return command(*arguments, **options)
            except UserError as error:
                for line in error.messages:
                    click.echo(line, err=True)
                raise Refused(str(error)) from None
            except KeyboardInterrupt:
                raise _interrupted() from None
            except MemoryError:
                raise Refused(
                    "there is not enough memory: end other programs, or raise the limit (ulimit -v)"
                ) from None
            except Exception as error:
                if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                    what = "" if error.filename is None else f"{error.filename}: "
                    raise Refused(f"{what}{error.strerror}: raise the limit of open files (ulimit -n)") from None
                # Some libraries make errors of their own of what is raised within them.
                if interrupt.came() is None or isinstance(error, (click.ClickException, OutputLostError)):
                    raise
                raise _interrupted() from None

    return run
