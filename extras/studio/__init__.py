"""Studio: the lab in a browser. A front end like the command line; nothing of the product imports it."""

from __future__ import annotations

import click

from ewan.extra import Extra
from ewan.labs.base.errors import UserError


def _studio() -> click.Command:
    from ewan.extras.studio.cli import studio_command

    return studio_command


def _rest() -> str:
    try:
        from ewan.extras.studio.server import app, reference
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed: run ./setup.sh studio") from None
    return reference.markdown(app.interface())


EXTRA = Extra(commands={"studio": _studio}, pages={"reference/rest.md": _rest})
