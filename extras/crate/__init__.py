"""An experiment as a research object that others can check: RO-Crate 1.3, with the files that repeat and compare it.

In: an experiment's directory. Out: a directory or a .zip with all of it, its description (ro-crate-metadata.json), a
bill of materials (SPDX), how to cite it (CITATION.cff), checksums, and reproduce.sh."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _archive() -> click.Command:
    from ewan.extras.crate.cli import archive_command

    return archive_command


EXTRA = Extra(commands={"exp archive": _archive})
