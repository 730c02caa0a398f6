"""Packages that only some commands need, and that an installation may lack: they are imported where they are used.

In: a block that imports such a package. Out: MissingPackageError, one line that says how it is installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from ewan.labs.base.errors import UserError
from ewan.labs.base.product import extra

SETUP = "make setup"


class MissingPackageError(UserError):
    """A package is not installed."""


@contextmanager
def wanted(what: str, of: str, command: str = SETUP) -> Iterator[None]:
    """Around imports of packages of the extra `of`, without which there is no `what`. `command`: installs them in the
    source tree."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "a package").partition(".")[0]
        if name == "ewan":
            raise
        raise MissingPackageError(lacking(what, name, of, command)) from None


def missing(name: str, what: str, of: str, command: str = SETUP) -> str:
    """The same as a line, without importing the package `name`; empty where it is installed."""
    return "" if importlib.util.find_spec(name) else lacking(what, name, of, command)


def lacking(what: str, name: str, of: str, command: str) -> str:
    """The line."""
    return f"{what} {name}, which is not installed: {extra(of, command)}"
