"""`ewan lab exec` and `ewan lab shell`: programs in the nodes of a lab that is up; their output and exit status are
ours."""

from __future__ import annotations

import sys

import click

from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import lab_option, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context


@click.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@lab_option
@click.argument("node")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@guarded
@pass_context
def exec_command(context: Context, lab: str | None, node: str, command: tuple[str, ...]) -> None:
    """Run a command in a node. The exit status is that of the command.

    \b
    ewan lab exec left1 -- ping -c 3 right1
    """
    as_root(context)
    words = list(command[1:] if command[0] == "--" else command)
    if not words:
        raise Refused("no command: write ewan lab exec NODE -- COMMAND")
    labs = context.live()
    sys.exit(labs.exec(which(labs, lab), node, words))


@click.command("shell")
@lab_option
@click.argument("node")
@guarded
@pass_context
def shell_command(context: Context, lab: str | None, node: str) -> None:
    """Open a shell in a node.

    \b
    ewan lab shell left1
    """
    as_root(context)
    labs = context.live()
    name = which(labs, lab)
    prompt = f"[{node}@{name}] \\w\\$ "
    # What the node has: a container's programs are its image's.
    shell = "command -v bash >/dev/null && exec bash --norc -i; exec sh -i"
    sys.exit(labs.exec(name, node, ["env", f"PS1={prompt}", "sh", "-c", shell]))
