"""`ewan lab path`: the links that packets cross between two hosts of a lab that is up, each way, as the routes are
now."""

from __future__ import annotations

import sys

import click
import orjson

from ewan.labs.base.sheet import grid
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import json_option, lab_option, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.routed_paths import RoutedPath, followed


@click.command("path")
@lab_option
@click.argument("source")
@click.argument("sink")
@json_option(lambda: dict[str, RoutedPath])
@guarded
@pass_context
def path_command(context: Context, lab: str | None, source: str, sink: str, as_json: bool) -> None:
    """Show the links between two hosts in both directions, by the present routing tables.

    \b
    ewan lab path host1 host2
    ewan lab path --lab ring-ospf host1 host2 --json
    """
    as_root(context)
    labs = context.live()
    plan = labs.load(which(labs, lab)).plan
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    for each in (source, sink):
        if each not in hosts:
            raise Refused(f"{plan.lab} has no host {each}: hosts are {', '.join(hosts[:10])}")
    told = labs.routes(plan.lab)
    ways = {f"{a} → {b}": followed(plan, told, a, b) for a, b in ((source, sink), (sink, source))}
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(ways, option=orjson.OPT_APPEND_NEWLINE))
        return
    context.reporter.console.print(grid(f"Paths of {plan.lab}", ["from → to", "links"], [*map(_row, ways.items())]))


def _row(found: tuple[str, RoutedPath]) -> list[str]:
    words, way = found
    return [words, way.broken or ", ".join(step.link for step in way.steps)]
