"""`ewan down`: removes labs of the live clock."""

from __future__ import annotations

import click

from labs.commands.errors import guarded
from labs.commands.live import which
from labs.commands.options import json_option, live_option, pass_context
from labs.commands.privileges import as_root
from labs.context import Context


@click.command("down")
@live_option
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="all labs that are up")
@json_option
@guarded
@pass_context
def down_command(context: Context, name: str | None, every: bool, as_json: bool) -> None:
    """Remove a lab: exactly what its manifest names.

    \b
    ewan down dumbbell
    ewan down --all
    """
    from labs.render import table
    from labs.sheet import grid

    as_root(context)
    labs, console = context.live(), context.reporter.console
    names = labs.names() if every and name is None else [which(labs, name)]
    removed = {}
    for lab in names:
        removed[lab] = labs.down(lab)
        if not as_json:
            console.print(table.removed(lab, removed[lab]), soft_wrap=True)
            title, columns, rows = table.last_counters(removed[lab])
            if rows:
                console.print(grid(title, columns, rows))
            for line in table.last_gaps(removed[lab]):
                console.print(line, soft_wrap=True)
    if as_json:
        context.reporter.emit(removed)
    elif not names:
        console.print("no lab is up")
