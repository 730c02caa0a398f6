"""`ewan lab watch`: a view of the links, or of the TCP flows, that redraws itself until Ctrl-C.

One view with --once, one JSON object a line with --json.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import click

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.sheet import Sheet
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import json_option, optional_lab, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.flows import Connection, Flows
from ewan.labs.flows import view as flow_view
from ewan.labs.plan import Plan
from ewan.labs.watch import WINDOW_MS, WatchedDirection, counters, sample, view

Seen = TypeVar("Seen")


class WatchedLinks(Struct):
    """The activity of the links of a lab in the last `window_ms`."""

    lab: str
    window_ms: int
    links: tuple[WatchedDirection, ...]


class WatchedFlows(Struct):
    """The TCP flows of a lab now."""

    lab: str
    flows: tuple[Connection, ...]


@click.command("watch")
@optional_lab
@click.option("--flows", "of_flows", is_flag=True, help="show the TCP flows: goodput, congestion window, RTT")
@click.option("--once", is_flag=True, help="print once and end")
@json_option(lambda: (WatchedLinks, WatchedFlows))
@guarded
@pass_context
def watch_command(context: Context, name: str | None, of_flows: bool, once: bool, as_json: bool) -> None:
    """Show the rate, the queue and the drops of every link, or the TCP flows, until Ctrl-C.

    \b
    ewan lab watch
    ewan lab watch dumbbell --once --json
    ewan lab watch --flows
    """
    as_root(context)
    labs = context.live()
    lab = which(labs, name)
    plan = labs.load(lab).plan
    if of_flows:
        return _watch_flows(context, plan, once, as_json)
    of_kernel = any(link.backend in ("kernel", "tbf") for link in plan.links)
    if of_kernel or not (plan.spinners or plan.hardware):
        raise Refused(
            f"the links of {lab} are made of the kernel's parts, which tell no course of theirs: "
            "bring it up with --emulator user"
        )
    _show(
        context,
        (sample(labs, plan) for _ in itertools.count()),
        lambda links: WatchedLinks(lab, WINDOW_MS, tuple(links)),
        lambda links: _tables(plan, links),
        lambda: WINDOW_MS / 1000,
        once=once,
        as_json=as_json,
    )


def _watch_flows(context: Context, plan: Plan, once: bool, as_json: bool) -> None:
    """Show views of the flows. The goodput of a view is an average since the view before; that of the first view is an
    average over half a second."""
    flows = Flows(context.live(), plan)
    try:
        flows.look()
        time.sleep(WINDOW_MS / 1000)
        _show(
            context,
            (flows.look() for _ in itertools.count()),
            lambda found: WatchedFlows(plan.lab, tuple(found)),
            lambda found: [flow_view(plan, found)],
            lambda: max(flows.wait_s, WINDOW_MS / 1000),
            once=once,
            as_json=as_json,
        )
    finally:
        flows.close()


def _show(
    context: Context,
    samples: Iterator[Seen],
    document: Callable[[Seen], Struct],
    tables: Callable[[Seen], list[Sheet]],
    wait_s: Callable[[], float],
    *,
    once: bool,
    as_json: bool,
) -> None:
    """Sample after sample, as it is asked for, until Ctrl-C."""
    console = context.reporter.console
    if as_json or once:
        for found in samples:
            if as_json:
                sys.stdout.buffer.write(codec.line(document(found)))
                sys.stdout.flush()
            else:
                console.print(*tables(found), sep="\n")
            if once:
                return
            time.sleep(wait_s())
    from rich.console import Group
    from rich.live import Live

    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        for found in samples:
            live.update(Group(*tables(found)), refresh=True)
            time.sleep(wait_s())


def _tables(plan: Plan, links: list[WatchedDirection]) -> list[Sheet]:
    return [sheet for sheet in (view(plan, links), counters(plan, links)) if sheet is not None]
