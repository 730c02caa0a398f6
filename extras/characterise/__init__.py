"""What a path is, measured from its two ends: RTT, capacity, buffer, loss, cross traffic, each with its uncertainty."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _characterise() -> click.Command:
    from ewan.extras.characterise.cli import characterise_command

    return characterise_command


EXTRA = Extra(commands={"characterise": _characterise})
