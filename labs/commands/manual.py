"""`ewan docs` and `ewan completion`: what the project says of its own words."""

from __future__ import annotations

import click

from ewan.labs.commands.group import composed
from ewan.labs.context import ROOT


@click.command("docs", hidden=True)
@click.pass_context
def docs_command(context: click.Context) -> None:
    """Write docs/description.md and its like from the schemas."""
    for name, markdown in composed(context, "pages").items():
        (ROOT / "docs" / name).write_text(markdown())


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    eval "$(ewan completion bash)"
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(root.command, {}, "ewan", "_EWAN_COMPLETE").source())
