"""`ewan lab adopt`: a lab that containerlab deployed by hand becomes one that `ewan` knows, as if it had made it."""

from __future__ import annotations

from pathlib import Path

import click

from ewan.labs.commands.errors import guarded
from ewan.labs.commands.options import live_option, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context


@click.command("adopt")
@live_option
@click.argument("file", metavar="FILE.clab.yml", type=click.Path(path_type=Path))
@guarded
@pass_context
def adopt_command(context: Context, file: Path) -> None:
    """Take over a lab that containerlab deployed from a file of `ewan lab compile`.

    \b
    ewan lab compile dumbbell -o out/
    containerlab deploy -t out/dumbbell.clab.yml
    ewan lab adopt out/dumbbell.clab.yml
    """
    as_root(context)
    name = context.live().adopt(file)
    context.reporter.console.print(f"{name} is adopted, unverified: ewan lab verify {name}", soft_wrap=True)
