"""The reference of all commands as a page, made of what the commands themselves say.

In: the root command. Out: Markdown: each command with its usage, its help and its options; those that many commands
share are listed once.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Iterator

import click

MANY = 6
"""An option that so many commands have with the same words is listed once."""

HEAD = """# Commands

`ewan COMMAND --help` prints the same as this page. Every number needs its unit, as in `100ms` and `1Gbit/s`.

`make help` lists the targets of `make` for the commands that are used most: `ewan lab dumbbell --rtt 100ms` is
`make lab TOPO=dumbbell RTT=100`, where a bare `RTT` means milliseconds.

`ewan completion bash` (or `zsh`, `fish`) prints a completion script.
[JSON output](json.md), [exit statuses](exit-codes.md) and [variables of the environment](environment.md) have pages
of their own.

"""


def markdown(root: click.Group) -> str:
    """The page; `root` is the command `ewan`."""
    context = click.Context(root, info_name="ewan")
    commands = [*commands_of(root, context)]
    counts = Counter(_row(option) for _, command in commands for option in options_of(command))
    shared = {row for row, count in counts.items() if count >= MANY}
    parts = [HEAD, "## Options of many commands\n\n", _table(row for row in counts if row in shared)]
    for path, command in commands:
        parts.append(f"## {path}\n\n{_help(command)}\n```\n{_usage(path, command)}\n```\n\n")
        own = [_row(option) for option in options_of(command)]
        parts.append(_table(row for row in own if row not in shared))
        if common := [row[0] for row in own if row in shared]:
            parts.append(f"And the [options of many commands](#options-of-many-commands) {', '.join(common)}.\n\n")
    return "".join(parts).rstrip() + "\n"


def commands_of(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group that are not hidden, with the words by which they are called."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        if not isinstance(command, click.Group):
            yield f"{context.command_path} {name}", command
            continue
        inner = click.Context(command, info_name=name, parent=context)
        own = getattr(command, "own_command", lambda: None)()
        if own is not None:
            yield inner.command_path, own
        yield from commands_of(command, inner)


def options_of(command: click.Command) -> list[click.Option]:
    """The options that are shown, with those that extras add."""
    found = command.get_params(click.Context(command))
    return [each for each in found if isinstance(each, click.Option) and not each.hidden and "--help" not in each.opts]


def _row(option: click.Option) -> tuple[str, str]:
    names = ", ".join(f"`{name}`" for name in option.opts)
    value = "" if option.is_flag else f" {option.make_metavar(click.Context(click.Command('x')))}"
    value = value.replace("|", r"\|")
    default = option.default if option.show_default else None
    shown = "" if default is None else f" (default: `{default}`)"
    return f"{names}{value}", f"{option.help or ''}{shown}".replace("|", r"\|")


def _usage(path: str, command: click.Command) -> str:
    words = [each.make_metavar(click.Context(command)) for each in command.params if isinstance(each, click.Argument)]
    return " ".join([path, "[OPTIONS]", *words])


def _table(rows: Iterable[tuple[str, str]]) -> str:
    listed = list(rows)
    if not listed:
        return ""
    return "| option | meaning |\n|---|---|\n" + "".join(f"| {a} | {b} |\n" for a, b in listed) + "\n"


def _help(command: click.Command) -> str:
    """The help as Markdown: a paragraph that is not to be wrapped is a block of commands."""
    text = ""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            text += "```\n" + paragraph.removeprefix("\b\n") + "\n```\n\n"
        else:
            text += " ".join(paragraph.split()).replace("<", r"\<") + "\n\n"
    return text
