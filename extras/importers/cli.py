"""`ewan lab import`: a script of tc, Dummynet or NIST Net as a lab description."""

from __future__ import annotations

from pathlib import Path

import click

from ewan.extras.importers.conversion import FORMATS, LINE_RATE, Format, imported
from ewan.labs.base import reading, writing
from ewan.labs.base.units import Rate, UnitError
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import pass_context
from ewan.labs.context import Context


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="a new file, like shape.lab.yaml")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="the script language (default: found from the commands)"
)
@click.option("--lenient", is_flag=True, help="leave out what a description cannot express, with a comment, and go on")
@click.option(
    "--line-rate",
    default=str(LINE_RATE),
    show_default=True,
    help="rate of the network cards where the script has no rate",
)
@guarded
@pass_context
def import_command(
    context: Context, /, file: Path, output: Path | None, form: Format | None, lenient: bool, line_rate: str
) -> None:
    """Write a lab description for a script of tc (netem, tbf, htb), Dummynet or NIST Net to standard output.

    The script is read and not run. What a description cannot say is refused, with its line. What else of the script is
    not in the lab is named in warnings.

    \b
    ewan lab import shape.sh -o shape.lab.yaml
    ewan lab shape.lab.yaml
    """
    from ewan.labs import host
    from ewan.labs.compile import compile as compile_spec
    from ewan.labs.spec import DescriptionError

    try:
        text = reading.read_text(file)
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}: write the path of a script") from None
    try:
        rate = Rate.parse(line_rate)
    except UnitError as error:
        raise Refused(f'--line-rate "{line_rate}": {error}') from None
    made = imported(text, str(file), form, lenient=lenient, line_rate=rate)
    try:
        compile_spec(made.spec, host.virtual_facts())
    except DescriptionError as error:
        raise Refused(f"{file}: no lab can do this: {error}") from None
    for warning in made.warnings:
        click.echo(f"warning: {warning}", err=True)
    if output is None:
        click.echo(made.text, nl=False)
        return
    if not output.name.endswith((".lab.yaml", ".yaml", ".yml")):
        raise Refused(f"--output {output}: write a name that ends in .lab.yaml")
    try:
        writing.write_new(output, made.text.encode())
    except FileExistsError:
        raise Refused(f"--output {output}: is there already: write another name") from None
    except OSError as error:
        raise Refused(writing.trouble(error, output, "write another path after --output")) from None
    context.reporter.console.print(str(output), soft_wrap=True)
