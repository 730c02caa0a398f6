"""Studio: the lab in a browser. A front end like the command line; nothing of the product imports it."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _studio() -> click.Command:
    from ewan.extras.studio.cli import studio_command

    return studio_command


EXTRA = Extra(commands={"studio": _studio})
