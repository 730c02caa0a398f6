"""Suites: sets of scenarios with common parameters; HSTTS, the High Speed Transport protocol Test Suite."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _hstts() -> click.Command:
    from ewan.extras.suites.cli import hstts_command

    return hstts_command


EXTRA = Extra(commands={"suite hstts": _hstts})
