"""`ewan down`: removes labs of the live clock."""

from __future__ import annotations

import sys

import click

from ewan.labs.commands.errors import guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import json_option, optional_lab, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError


def _output() -> object:
    from ewan.labs.runtime.answers import Removed

    return dict[str, Removed]


@click.command("down")
@optional_lab
@click.option("--all", "every", is_flag=True, help="remove all of your labs that this copy of ewan made")
@click.option("--everyone", is_flag=True, help="with --all: also labs of other users and copies")
@json_option(_output)
@guarded
@pass_context
def down_command(context: Context, name: str | None, every: bool, everyone: bool, as_json: bool) -> None:
    """Remove a lab: exactly what its manifest names.

    \b
    ewan down dumbbell
    ewan down --all
    ewan down --all --everyone
    """
    from ewan.labs.base.sheet import grid
    from ewan.labs.commands import removal
    from ewan.labs.runtime import host_modules

    as_root(context)
    labs, console = context.live(), context.reporter.console
    owners = labs.owners() if every and name is None else {}
    names = [lab for lab, owner in owners.items() if everyone or labs.is_own(owner)]
    found: list[object] = [] if name is not None else [*_killed_boxes(context), *host_modules.left(context.state)]
    if name is not None or (not every and (labs.names() or not found)):
        names = [which(labs, name)]
    left = {lab: owner for lab, owner in owners.items() if lab not in names}
    removed, failed = {}, False
    for lab in names:
        try:
            removed[lab] = labs.down(lab)
        except LabError as error:
            if len(names) == 1:
                raise
            context.reporter.warn(str(error))
            failed = True
            continue
        if not as_json:
            console.print(removal.summary(lab, removed[lab]), soft_wrap=True)
            title, columns, rows = removal.counters(removed[lab])
            if rows:
                console.print(grid(title, columns, rows))
            for line in removal.gaps(removed[lab]):
                console.print(line, soft_wrap=True)
    for line in host_modules.unload_left(context.state):
        context.reporter.note(line)
    for lab, owner in left.items():
        whose = "of an unknown owner" if owner is None else f"of {owner.words()}"
        context.reporter.warn(f"{lab} stays up, {whose}: ewan down {lab}, or --all --everyone, removes it")
    if as_json:
        context.reporter.emit(removed)
    elif not names and not found:
        console.print("no lab of yours is up" if left else "no lab is up")
    if failed:
        sys.exit(2)


def _killed_boxes(context: Context) -> list[int]:
    """Removes what simulated boxes left that were killed, and says so; their process ids."""
    from ewan.labs.runtime import boxes

    killed = boxes.remove_killed()
    for box in killed:
        context.reporter.note(f"a simulated box (process {box}) had been killed: what it left is removed")
    return killed
