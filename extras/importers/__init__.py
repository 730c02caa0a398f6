"""Scripts of other emulators as lab descriptions: tc (netem, tbf, htb), Dummynet, NIST Net."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _import() -> click.Command:
    from ewan.extras.importers.cli import import_command

    return import_command


EXTRA = Extra(commands={"import": _import})
