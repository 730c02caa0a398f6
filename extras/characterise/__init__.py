"""Characterisation of a path, measured from its two ends: RTT, capacity, buffer, loss, cross traffic, each with its
uncertainty.

`plan.py` chooses the packets that are sent and `estimators.py` computes estimates from their times; both are pure.
`measure.py` has the order, in either clock. The rest of the project knows only the document
(labs/record/characterisation.py)."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _characterise() -> click.Command:
    from ewan.extras.characterise.cli import characterise_command

    return characterise_command


EXTRA = Extra(commands={"measure path": _characterise})
