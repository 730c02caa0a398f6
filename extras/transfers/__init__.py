"""Bulk transfers with time windows: requests, the plans of a transfer service, the best that any plan could do."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _transfers() -> click.Command:
    from ewan.extras.transfers.cli import transfers_command

    return transfers_command


EXTRA = Extra(commands={"transfers": _transfers})
