"""Reinforcement learning of congestion control: a Gymnasium environment in the virtual clock (environment.py)."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _try() -> click.Command:
    from ewan.extras.gym.cli import try_command

    return try_command


def _example() -> click.Command:
    from ewan.extras.gym.cli import example_command

    return example_command


EXTRA = Extra(commands={"gym try": _try, "gym example": _example})
