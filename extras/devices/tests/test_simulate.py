"""The simulated box stays where no program can write to its standard input."""

from __future__ import annotations

import os
from pathlib import Path

from ewan.extras.devices.cli import _commands_from


def test_commands_come_from_a_pipe_and_not_from_where_nobody_writes(tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as pipe, os.fdopen(write, "w"), Path("/dev/null").open() as nothing:
        assert _commands_from(pipe) == read
        assert _commands_from(nothing) is None
    (tmp_path / "file").touch()
    with (tmp_path / "file").open() as file:
        assert _commands_from(file) is None
    assert _commands_from(None) is None and _commands_from(file) is None, "it is closed"
