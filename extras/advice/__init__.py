"""Advice on the protocol for a path: a lab derived from its measurement, experiments on that lab, their ranking."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _advise() -> click.Command:
    from ewan.extras.advice.cli import advise_command

    return advise_command


EXTRA = Extra(commands={"suite advise": _advise})
