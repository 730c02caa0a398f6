"""Commands stand in groups, and the names of version 0.1 still work."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from ewan import cli, commands
from ewan.extra import installed
from ewan.labs.commands.group import CommandGroup

RESERVED = ("evaluate", "fit")
"""Names that no command may have: they are kept for what comes."""


def leaves(group: click.Group, path: str = "") -> dict[str, click.Command]:
    """All commands below a group by the words that people type."""
    context = click.Context(group)
    found: dict[str, click.Command] = {}
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None, word
        if isinstance(command, CommandGroup) and f"{path}{word}" in commands.GROUPS:
            if own := command.own_command():
                found[f"{path}{word}"] = own
            found |= leaves(command, f"{path}{word} ")
        else:
            found[f"{path}{word}"] = command
    return found


def test_each_command_has_one_name() -> None:
    assert sorted(leaves(cli.main)) == sorted(cli.names())


def test_names_that_are_kept_free_are_free() -> None:
    assert not {name.split()[0] for name in cli.names()} & set(RESERVED)


def test_a_group_that_is_a_command_too_knows_the_words_of_extras() -> None:
    of_extras = [name for name in installed().commands if name.startswith("lab ")]
    assert sorted(of_extras) == sorted(commands.OF_EXTRAS)


def test_no_topology_has_the_name_of_a_command_of_the_group() -> None:
    from ewan.labs.spec import names
    from ewan.labs.spec.fields import Topology

    words = {name.removeprefix("lab ") for name in cli.names() if name.startswith("lab ")}
    assert not words & {*Topology.words(), *names.known(names.LAB)}


@pytest.mark.parametrize(("old", "new"), commands.OLD_NAMES.items())
def test_an_old_name_is_its_new_command_and_says_so(old: str, new: str) -> None:
    done = CliRunner().invoke(cli.main, [old, "--help"], prog_name="ewan")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: ewan {new} ")
    assert done.stderr == f"ewan: `ewan {old}` is now `ewan {new}`; the old name works until version 0.4\n"


@pytest.mark.parametrize(
    ("words", "new"),
    [
        ([], "measure host"),
        (["--size", "quick"], "measure host"),
        (["--json"], "measure host"),
        (["dumbbell", "--rtt", "10ms"], "measure lab"),
        (["--path", "a", "b"], "measure lab"),
    ],
)
def test_calibrate_is_one_of_two_commands(words: list[str], new: str) -> None:
    assert commands.current_name(["calibrate", *words]) == new


def test_an_old_option_works_and_says_the_new_one() -> None:
    done = CliRunner().invoke(cli.main, ["run", "first", "--show", "--scale", "full"], prog_name="ewan")
    assert done.exit_code == 0 and done.stdout.startswith("# The first experiment")
    assert done.stderr.splitlines() == [
        "ewan: `--show` is now `--dry-run`; the old name works until version 0.4",
        "ewan: `--scale` is now `--size`; the old name works until version 0.4",
    ]


@pytest.mark.parametrize("words", [["lab", "dumbbell"], ["lab", "--rtt", "10ms", "dumbbell"]])
def test_lab_and_a_topology_are_a_command(words: list[str]) -> None:
    context = cli.main.make_context("ewan", [*words])
    _, command, rest = cli.main.resolve_command(context, [*words])
    assert isinstance(command, CommandGroup)
    inner = command.make_context("lab", rest, parent=context)
    assert inner.command.name == "lab" and not isinstance(inner.command, click.Group)
    assert inner.params["topology"] == "dumbbell"


def test_help_of_the_group_names_both() -> None:
    done = CliRunner().invoke(cli.main, ["lab", "--help"], prog_name="ewan")
    assert "ewan lab TOPOLOGY: " in done.stdout and "  exec " in done.stdout
