"""The command `tag`: an experiment's name, tags and note, changed after it has ended.

In: an experiment's directory, what to add and what to take away. Out: its experiment.json, replaced in one step; what
it is called, on standard output.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from ewan.experiments.engine.label_changes import relabel
from ewan.labs.base.codec import Struct
from ewan.labs.commands.errors import guarded
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.context import Context

TAKEN_AWAY = re.compile(r"-[^-].+")
TEXTS = ("--name", "--note")


class TagCommand(click.Command):
    """Takes `-TAG` as an argument, not as the letters of options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The same, with those words behind "--"."""
        away = [
            number
            for number, word in enumerate(args)
            if TAKEN_AWAY.fullmatch(word) and "--" not in args[:number] and args[max(number - 1, 0)] not in TEXTS
        ]
        others = [word for number, word in enumerate(args) if number not in away]
        ends = [] if "--" in others or not away else ["--"]
        return super().parse_args(ctx, [*others, *ends, *(args[number] for number in away)])


class ExperimentLabels(Struct):
    """The labels of an experiment after a change of them."""

    name: str | None
    tags: list[str]
    note: str | None


@click.command("tag", cls=TagCommand)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("changes", metavar="[+TAG|-TAG]…", nargs=-1, type=click.UNPROCESSED)
@click.option("--name", metavar="TEXT", help='a name for the experiment; "" removes the name')
@click.option("--note", metavar="TEXT", help='a note that is kept with it; "" removes the note')
@json_option(lambda: ExperimentLabels)
@guarded
@pass_context
def tag_command(
    context: Context, directory: Path, changes: tuple[str, ...], name: str | None, note: str | None, as_json: bool
) -> None:
    """Change the tags, the name and the note of an experiment, or show them.

    `ewan exp list --tag TAG` lists the experiments with a tag. The next `ewan results report DIR` has the changes.

    \b
    ewan exp tag results/20261121T120000Z-parallel-streams +satellite -draft
    ewan exp tag results/20261121T120000Z-parallel-streams --name "Figure 3" --note "seeds 1 to 5; for section 4"
    """
    document = relabel(directory, changes, name, note)
    if as_json:
        context.reporter.emit(ExperimentLabels(document.name, document.tags, document.note))
        return
    for what, words in (("name", document.name), ("tags", ", ".join(document.tags)), ("note", document.note)):
        context.reporter.console.print(f"{what}: {words or 'none'}", soft_wrap=True, markup=False)
