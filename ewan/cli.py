"""The command line `ewan`: composes the parts' own commands, no logic of its own.

A command's part is imported when the command is called: the libraries for drawing and statistics take a second to
import.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # built into Python: it takes no time
import os
import sys

if __name__ == "__main__":
    # Ctrl-C ends the process without words from now on, also while the handler below is imported.
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
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
from ewan.labs.commands.group import CommandGroup
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


class CommandLine(CommandGroup):
    """All commands; those that had other names in version 0.1 have these too, until 0.4."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first words; a line on standard error says the new name of an old one."""
        name = commands.current_name(args)
        if name is None:
            return super().resolve_command(ctx, args)
        if not ctx.resilient_parsing:
            click.echo(f"ewan: `ewan {args[0]}` is now `ewan {name}`; the old name works until version 0.4", err=True)
        command = load(name)
        if command is None:
            ctx.fail(f"No such command '{name}'.")
        return name, command, args[1:]


@click.group(
    cls=CommandLine,
    names=names,
    load=load,
    helps=commands.GROUPS,
    words=(*commands.NAMES, *commands.OF_EXTRAS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="ewan")
@click.pass_context
def main(context: click.Context) -> None:
    """A network emulation lab whose links are measured before anyone trusts them.

    \b
    ewan run first                         compare two TCPs, in seconds
    ewan lab dumbbell --rtt 100ms          compile, bring up, verify, leave it up
    ewan lab exec left1 -- ping right1     run a program in a node
    ewan down dumbbell                     remove the lab
    ewan lab dumbbell --rtt 100ms --rate 10G --runtime virtual
                                           the same in simulated time: exact, without root
    """
    restrict_umask()
    context.obj = Context.of(os.environ)


if __name__ == "__main__":
    interrupt.run(lambda: main(prog_name="ewan"))
