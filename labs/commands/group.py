"""A command line put together from commands that are imported when they are called.

In: the names of the commands, a function that imports one. Out: a click group whose usage errors are one line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from ewan.labs.base import streams
from ewan.labs.commands.errors import Refused


class Commands(click.Group):
    """A group whose usage errors are one line, as all others are.

    `names` gives the names in the order in which `--help` lists them; `load` imports the command of a name, or gives
    None where there is none.
    """

    def __init__(
        self,
        *arguments: Any,
        names: Callable[[], Iterable[str]],
        load: Callable[[str], click.Command | None],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._names = names
        self._load = load

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order in which `--help` lists them."""
        return list(self._names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now; None where there is none."""
        return self._load(cmd_name)

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Runs the command line as click does; closed or full output ends it in one line (`ewan.labs.base.streams`)."""
        return streams.run(lambda: super(Commands, self).main(*arguments, **options))

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Reads the options of the group; Refused, in one line, for a usage error."""
        with _in_one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was asked for; Refused, in one line, for a usage error."""
        with _in_one_line():
            return super().invoke(ctx)


@contextlib.contextmanager
def _in_one_line() -> Iterator[None]:
    """Turns click's usage errors into `Refused`, which is one line."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "ewan"
        message = " ".join(error.format_message().split()).rstrip(".")
        raise Refused(f"{message}: {where} --help lists what there is") from None
