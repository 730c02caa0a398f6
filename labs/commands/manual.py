"""`ewan docs` and `ewan completion`: what the project says of its own words."""

from __future__ import annotations

import click

from ewan.labs.base.product import ROOT


@click.command("docs", hidden=True)
def docs_command() -> None:
    """Write docs/description.md and its like from the schemas."""
    from ewan.generator.scenario import manual as scenarios
    from ewan.labs import spec
    from ewan.labs.record import manual as metrics
    from ewan.labs.record import schema

    pages = {
        "description.md": spec.markdown(),
        "scenario.md": scenarios.markdown(),
        "metrics.md": metrics.markdown(),
        "certificate.schema.json": schema.certificate_schema(),
        "characterisation.schema.json": schema.characterisation_schema(),
    }
    for name, text in pages.items():
        (ROOT / "docs" / name).write_text(text)


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
