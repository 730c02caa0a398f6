"""`ewan lab compile`: the plan of a description, with its picture, its table and containerlab's file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click

from ewan.labs import descriptions
from ewan.labs.base.writing import trouble
from ewan.labs.commands import live, tables
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import description_options, json_option, machines_option, pass_context, trust_option
from ewan.labs.context import Context
from ewan.labs.images import TAG
from ewan.labs.plan import digest
from ewan.labs.render import containerlab, dashboards, files
from ewan.labs.runtime.binary import node_binary


@click.command("compile")
@machines_option
@trust_option
@description_options
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="the folder for the files",
)
@json_option(lambda: dict[str, str])
@guarded
@pass_context
def compile_command(context: Context, /, topology: str, output: Path, as_json: bool, **options: Any) -> None:
    """Compile a description to NAME.plan.json, NAME.svg, NAME.txt, and NAME.clab.yml for containerlab, with NAME/.

    \b
    ewan lab compile dumbbell --rtt 100ms --rate 1G
    ewan lab compile labs/library/parking-lot.lab.yaml -o out/
    """
    from rich.console import Console

    reporter, virtual = context.reporter, context.runtime == "virtual"
    plan = descriptions.plan_of(topology, options, reporter.note, virtual=virtual, facts=live.host_facts(context))
    prepared = None
    if context.machines is not None:
        with reporter.progress(f"placing {plan.lab}") as progress:
            prepared = context.multi_machine(progress.update).prepare(plan)
        for warning in prepared.warnings:
            reporter.warn(warning)
    machine_of = {} if prepared is None else prepared.machine_of
    drawn = tables.of_plan(plan, machine_of)
    sheet = Console(file=io.StringIO(), emoji=False, record=True, width=160)
    sheet.print(*drawn, sep="\n")
    try:
        ports = dashboards.ports_of(context.environment)
        binary = node_binary(context.binary) if containerlab.needs_binary(plan) else None
        if prepared is not None:
            made = files.written_for_machines(
                prepared.whole,
                prepared.plans,
                machine_of,
                output,
                sheet=sheet.export_text(),
                version=TAG,
                ports=ports,
                binary=binary,
            )
        else:
            made = files.written(
                plan, output, sheet=sheet.export_text(), version=TAG, ports=ports, live=not virtual, binary=binary
            )
    except ValueError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(trouble(error, output, "name another directory with --output")) from None
    if as_json:
        reporter.emit({"lab": plan.lab, "plan_sha256": digest(plan), **{key: str(path) for key, path in made.items()}})
        return
    reporter.console.print(*drawn, sep="\n")
    reporter.console.print("  ".join(f"{key} {path}" for key, path in made.items()), soft_wrap=True)
