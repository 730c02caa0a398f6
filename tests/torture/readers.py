"""What commands do with files before they make anything, as functions for processes of `tests.forked`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from ewan.experiments.engine import archive, preparation, rerun
from ewan.generator import scenario as scenarios
from ewan.labs.commands.errors import guarded

MODULES = (
    "ewan.cli",
    *(f"ewan.labs.commands.{name}" for name in ("batch", "compile", "down", "ps", "up")),
    "ewan.labs.runtime.live",
    "ewan.experiments.engine.cli",
    "ewan.extras.suites.cli",
    "ewan.analysis.cli",
    "rich.live",
    "rich.table",
)
"""What the forking process imports, this module besides."""


def scenario(path: str) -> None:
    """What `ewan run` checks before it makes a directory, in the virtual clock."""

    def read() -> None:
        for _ in preparation.jobs(scenarios.load(path).runs(), virtual=True):
            pass

    _as_command(read)


def experiment(path: str) -> None:
    """What `ewan exp rerun` reads of a directory or an archive before it runs anything."""

    def read() -> None:
        with archive.opened(Path(path)) as before:
            archive.intact(before, Path(path))
            rerun.again_on(before, None)
            for entry in before.runs:
                before.job(entry)

    _as_command(read)


def _as_command(read: Callable[[], None]) -> None:
    try:
        guarded(read)()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
