"""Studio: the lab in a browser. A front end like the command line; nothing of the product imports it."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _studio() -> click.Command:
    from ewan.extras.studio.cli import studio_command

    return studio_command


def _rest() -> str:
    from ewan.extras.studio.server import app, reference

    return reference.markdown(app.interface())


EXTRA = Extra(commands={"studio": _studio}, pages={"reference/rest.md": _rest})
