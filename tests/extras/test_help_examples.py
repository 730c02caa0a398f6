"""Every example in the help of a command is a command line that is accepted."""

from __future__ import annotations

import inspect
import re
import shlex

import click
import pytest

from ewan import cli
from ewan.experiments.engine.tag import TAKEN_AWAY
from ewan.labs.commands.group import CommandGroup
from ewan.labs.commands.reference import commands_of, options_of


def examples() -> list[str]:
    """The lines of all help texts that begin with `ewan`, without what stands beside them as a comment."""
    context = click.Context(cli.main, info_name="ewan")
    texts = [inspect.cleandoc(command.help or "") for _, command in commands_of(cli.main, context)]
    found = [line.strip() for text in texts for line in text.splitlines() if line.strip().startswith("ewan ")]
    return [re.split(r" {3,}| \| | > ", line)[0] for line in found]


@pytest.mark.parametrize("example", examples())
def test_an_example_is_accepted(example: str) -> None:
    words = shlex.split(example)[1:]
    context = click.Context(cli.main, info_name="ewan")
    command: click.Command = cli.main
    while isinstance(command, click.Group):
        if isinstance(command, CommandGroup) and words[0] not in command.list_commands(context):
            command = command.own_command() or command
            break
        name, inner, words = command.resolve_command(context, words)
        assert inner is not None, example
        context, command = click.Context(inner, info_name=name, parent=context), inner
    if command.name == "tag":  # it takes a word such as `-draft` as an argument
        words = [word for word in words if not TAKEN_AWAY.fullmatch(word)]
    values, _, given = command.make_parser(context).parse_args(list(words))
    old = [option.opts[0] for option in given if isinstance(option, click.Option) and option.hidden]
    assert not old, f"{example}: write the present name of {', '.join(old)}"
    for parameter in command.params:
        value = values.get(str(parameter.name))
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            assert value in parameter.type.choices, f"{example}: {value}"


def test_each_option_says_what_it_does() -> None:
    context = click.Context(cli.main, info_name="ewan")
    silent = [
        f"{path} {option.opts[0]}"
        for path, command in commands_of(cli.main, context)
        for option in options_of(command)
        if not option.help
    ]
    assert not silent
