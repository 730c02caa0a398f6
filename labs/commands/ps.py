"""`ewan ps`: the labs that are up."""

from __future__ import annotations

import click

from ewan.labs.commands.errors import guarded
from ewan.labs.commands.live import MAKES_ONE, which
from ewan.labs.commands.options import json_option, optional_lab, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context


def _output() -> object:
    from ewan.labs.runtime.answers import Status

    return list[Status]


@click.command("ps")
@optional_lab
@json_option(_output)
@guarded
@pass_context
def ps_command(context: Context, name: str | None, as_json: bool) -> None:
    """List the labs that are up, with nodes, addresses and links.

    \b
    ewan ps
    ewan ps dumbbell --json
    """
    from ewan.labs.base.sheet import grid
    from ewan.labs.commands import tables

    as_root(context)
    labs, console = context.live(), context.reporter.console
    names = [which(labs, name)] if name is not None else labs.names()
    if as_json:
        context.reporter.emit([labs.status(lab) for lab in names])
        return
    if not names:
        console.print(f"no lab is up: {MAKES_ONE}")
    for lab in names:
        status = labs.status(lab)
        said = f"[bold]{lab}[/bold]  {status.state}  [dim]{status.runtime}[/dim]  {status.note}"
        console.print(said.rstrip(), soft_wrap=True, markup=True)
        if status.links_down:
            console.print(f"down: {', '.join(status.links_down)}: ewan lab set LINK up", soft_wrap=True)
        if status.plan:
            plan = labs.load(lab).plan
            machine_of = {node.name: node.machine for node in status.nodes if node.machine is not None}
            for drawn in tables.of_plan(plan, machine_of):
                console.print(drawn)
            if made := tables.changes(labs, plan):
                console.print(grid("Changes since it came up", tables.CHANGES, made))
