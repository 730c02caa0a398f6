"""A command line put together from commands that are imported when they are called.

In: the names of the commands, a function that imports one. Out: a click group with groups in it, whose usage errors are
one line.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import click

from ewan.labs.base import streams
from ewan.labs.commands.errors import Refused

Load = Callable[[str], click.Command | None]
"""Imports the command of a name, `lab verify`; None where there is none."""


class CommandGroup(click.Group):
    """The commands whose names begin with the words of this group.

    `names` gives the names of all commands in the order in which `--help` lists them, `helps` one line about each
    group. Where a command has the name of a group, as `ewan lab TOPOLOGY` has, it gets all arguments that do not begin
    with one of `words`, the names that are known without a look at extras.
    """

    def __init__(
        self,
        *arguments: Any,
        names: Callable[[], Iterable[str]],
        load: Load,
        helps: Mapping[str, str] = types.MappingProxyType({}),
        words: Collection[str] = (),
        path: str = "",
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._names, self._load, self._helps, self._words, self._path = names, load, helps, words, path

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The first words of all commands below this group, in the order in which `--help` lists them."""
        below = [name.removeprefix(self._path) for name in self._names() if name.startswith(self._path)]
        return list(dict.fromkeys(name.split()[0] for name in below))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this word, imported now, or the group of this word; None where there is neither."""
        name = self._path + cmd_name
        if name not in self._helps:
            return self._load(name)
        return CommandGroup(
            cmd_name,
            names=self._names,
            load=self._load,
            helps=self._helps,
            words=self._words,
            path=f"{name} ",
            help=self._helps[name],
            context_settings=self.context_settings,
        )

    def own_command(self) -> click.Command | None:
        """The command that has the name of this group, as `ewan lab TOPOLOGY` has; None where there is none."""
        name = self._path.rstrip()
        return self._load(name) if name in self._words else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands, and below them the groups with what they hold."""
        words = self.list_commands(ctx)
        if own := self.own_command():
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} TOPOLOGY: {own.get_short_help_str(200)}")
        groups = [word for word in words if self._path + word in self._helps]
        rows = []
        for word in words:
            command = self.get_command(ctx, word) if word not in groups else self._load(self._path + word)
            if command is not None and not command.hidden:
                rows.append((word, command.get_short_help_str(200)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        if groups:
            with formatter.section("Groups of commands"):
                formatter.write_dl([(word, self._helps[self._path + word]) for word in groups])

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Runs the command line as click does; closed or full output ends it in one line (`ewan.labs.base.streams`)."""
        return streams.run(lambda: super(CommandGroup, self).main(*arguments, **options))

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Reads the options of the group, or of its own command; Refused, in one line, for a usage error."""
        other = bool(args) and args[0] not in ("-h", "--help") and self._path + args[0] not in self._words
        if other and (own := self.own_command()):
            return own.make_context(info_name, args, parent, **extra)
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
