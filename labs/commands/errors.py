"""Errors of commands: one line each, and the exit status that goes with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import click

from labs.errors import UserError
from labs.reading import one_line, shortened

P = ParamSpec("P")
R = TypeVar("R")


class Refused(click.ClickException):
    """An error that the user can put right: one line, exit status 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Writes the line to standard error; `file`, which click passes, is not used."""
        click.echo(f"ewan: {shortened(one_line(self.message))}", err=True)


class Incomplete(Refused):
    """What was to be measured is not all there: one line, exit status 1."""

    exit_code = 1


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Turns the errors that a user can put right into one line with exit status 2."""

    @functools.wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return command(*arguments, **options)
        except UserError as error:
            raise Refused(str(error)) from None

    return run
