"""The command line `ewan`: composes the parts' own commands, no logic of its own.

A command's part is imported when the command is called: drawing and statistics alone take a second to import.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # pathlib takes a while to import
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120

from ewan.labs.base import interrupt, limits

if __name__ == "__main__":
    # The processes that work for this one are started with its options: without -P they would import what others have
    # written into the directory where it was called.
    if not sys.flags.safe_path:
        interrupt.block()
        os.execv(sys.executable, [sys.executable, "-P", *sys.orig_argv[1:]])
    interrupt.begin()
    limits.check()

import click

from ewan import __version__, commands
from ewan.labs.base.ownership import restrict_umask
from ewan.labs.commands.group import Commands
from ewan.labs.context import Context


def names() -> list[str]:
    """The names of all commands: those of the core, then those of extras."""
    from ewan import extra

    found = extra.installed()
    for line in found.failures:
        click.echo(f"ewan: {line}", err=True)
    return [*commands.NAMES, *found.commands]


def load(name: str) -> click.Command | None:
    """The command of a name, imported now; None where there is none."""
    if command := commands.load(name):
        return command
    from ewan import extra

    other = extra.installed().commands.get(name)
    if other is None:
        return None
    try:
        return other()
    except Exception as error:  # a package of anybody's: whatever it raises, the other commands are usable
        click.echo(f"ewan: the command {name} cannot be used: {type(error).__name__}: {error}", err=True)
        return None


@click.group(
    cls=Commands,
    names=names,
    load=load,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="ewan")
@click.pass_context
def main(context: click.Context) -> None:
    """A network emulation lab whose links are measured before anyone trusts them.

    \b
    ewan lab dumbbell --rtt 100ms      compile, bring up, verify, leave it up
    ewan exec left1 -- ping right1     run something in a node
    ewan down dumbbell                 nothing left
    ewan lab dumbbell --rtt 100ms --rate 10G --runtime virtual
                                       the same in simulated time: exact, without root
    ewan run parallel-streams --scale quick --runtime virtual
                                       a scenario, from its lab to its report
    """
    restrict_umask()
    context.obj = Context.of(os.environ)


if __name__ == "__main__":
    interrupt.run(lambda: main(prog_name="ewan"))
