"""Bulk transfers with time windows: requests, the plans of a transfer service, the best that any plan could do.

A file of requests and its lab become a problem of volumes, windows and capacities (`reading.py`). `strategies.py` plans
and `optimum.py` bounds by linear programs; both are pure. `scenario_text.py` makes a plan a scenario, and `outcomes.py`
puts a run beside it.
"""

from __future__ import annotations

import click

from ewan.extra import Extra


def _transfers() -> click.Command:
    from ewan.extras.transfers.cli import transfers_command

    return transfers_command


EXTRA = Extra(commands={"suite transfers": _transfers})
