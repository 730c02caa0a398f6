"""The command `recorded`: the changes in a live lab, as a scenario.

In: the command line. Out: the scenario's text on standard output."""

from __future__ import annotations

from pathlib import Path

import click

from ewan.generator.scenario.link_recording import recorded
from ewan.labs import link_changes, spec
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import lab_option, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.spec import names


@click.command("recorded")
@lab_option
@click.option("--file", type=click.Path(path_type=Path), help="the description of the lab (default: LAB.lab.yaml)")
@guarded
@pass_context
def recorded_command(context: Context, lab: str | None, file: Path | None) -> None:
    """Print the changes that were made to the links of a running lab as a scenario.

    Changes by `ewan lab set` and by studio become events. Their times count from the first one.

    \b
    ewan lab record > again.scenario.yaml
    ewan run again.scenario.yaml --runtime virtual
    """
    as_root(context)
    labs = context.live()
    name = which(labs, lab)
    found = file or names.find(name, names.LAB)
    if found is None:
        raise Refused(f"there is no {name}.lab.yaml: write --file with the description that {name} was made of")
    text = spec.text_of(found, "write the path of a description")
    click.echo(recorded(text, labs.load(name).plan, link_changes.done(labs, name)), nl=False)
