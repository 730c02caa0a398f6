"""The CSV files that a command left in $EWAN_OUT, each as a table or with the reason why it is none.

In: a command's entry in commands.json, and the run's directory. Out: names of files with their state. Files are
others' work: only plain ones of bounded size and number are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ewan.generator.commands import RunCommand
from ewan.generator.readers import step_csv
from ewan.labs.record.own_tables import OwnTable

MOST_BYTES = 64 << 20
"""Bytes of one file that are read."""
MOST_FILES = 64
"""Files of one command that are read."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ENDING = ".csv"
_SHOWN = 80
"""Characters of a file's name."""


def tables(entry: RunCommand, directory: Path, t0_unix_ns: int | None) -> Iterator[tuple[str, OwnTable | str]]:
    """Each CSV of a command, with its table or why it has none, in one line."""
    place = directory / entry.files
    if entry.started_ns is None or not place.is_dir():
        return
    there = sorted(path for path in place.iterdir() if path.suffix == _ENDING)
    for number, path in enumerate(there):
        if number == MOST_FILES:
            yield path.name[:_SHOWN], f"is left out, and so are those after it: write at most {MOST_FILES} files"
            return
        yield path.name[:_SHOWN], _table(path, entry.started_ns, t0_unix_ns)


def _table(path: Path, started_ns: int, t0_unix_ns: int | None) -> OwnTable | str:
    if not _NAME.fullmatch(path.stem):
        return "its name is too long, or has more than letters, digits, '.', '-' and '_'"
    if path.is_symlink() or not path.is_file():
        return "is no plain file"
    try:
        if path.stat().st_size > MOST_BYTES:
            return f"has more than {MOST_BYTES >> 20} MiB: write less"
        return step_csv.read(path.read_bytes(), started_ns, t0_unix_ns)
    except (OSError, ValueError) as error:
        return str(error).splitlines()[0]
