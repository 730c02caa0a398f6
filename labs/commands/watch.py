"""`ewan watch`: a view of the links that redraws itself twice a second until Ctrl-C.

One view with --once, one JSON object a line with --json.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import click
import orjson

from labs.commands.errors import Refused, guarded
from labs.commands.live import which
from labs.commands.options import json_option, live_option, pass_context
from labs.commands.privileges import as_root
from labs.context import Context
from labs.plan import Plan
from labs.sheet import Sheet
from labs.watch import WINDOW_MS, counters, sample, view


@click.command("watch")
@live_option
@click.argument("name", required=False)
@click.option("--once", is_flag=True, help="one view, then end")
@json_option
@guarded
@pass_context
def watch_command(context: Context, name: str | None, once: bool, as_json: bool) -> None:
    """Rate, queue and drops of every link, live; Ctrl-C ends.

    \b
    ewan watch
    ewan watch dumbbell --once --json
    """
    as_root(context)
    labs, console = context.live(), context.reporter.console
    lab = which(labs, name)
    plan = labs.load(lab).plan
    of_kernel = any(link.backend in ("kernel", "tbf") for link in plan.links)
    if of_kernel or not (plan.spinners or plan.hardware):
        raise Refused(
            f"the links of {lab} are made of the kernel's parts, which tell no course of theirs: "
            "bring it up with --emulator user"
        )
    if as_json or once:
        while True:
            links = sample(labs, plan)
            if as_json:
                sys.stdout.buffer.write(orjson.dumps({"lab": lab, "window_ms": WINDOW_MS, "links": links}) + b"\n")
                sys.stdout.flush()
            else:
                console.print(*_tables(plan, links), sep="\n")
            if once:
                return
            time.sleep(WINDOW_MS / 1000)
    from rich.console import Group
    from rich.live import Live

    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(Group(*_tables(plan, sample(labs, plan))), refresh=True)
            time.sleep(WINDOW_MS / 1000)


def _tables(plan: Plan, links: list[dict[str, Any]]) -> list[Sheet]:
    return [sheet for sheet in (view(plan, links), counters(plan, links)) if sheet is not None]
