"""`ewan lab path`: the links that packets cross between two hosts of a lab that is up, each way, as the routes are
now."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

import click
import orjson

from ewan.labs.base.sheet import grid
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.live import which
from ewan.labs.commands.options import json_option, lab_option, pass_context
from ewan.labs.commands.privileges import as_root
from ewan.labs.context import Context
from ewan.labs.forwarding import BETWEEN, Forwarding
from ewan.labs.routed_paths import LinkStep, RoutedPath, followed


@click.command("path")
@lab_option
@click.argument("source")
@click.argument("sink")
@json_option(lambda: dict[str, RoutedPath])
@guarded
@pass_context
def path_command(context: Context, lab: str | None, source: str, sink: str, as_json: bool) -> None:
    """Show the links between two hosts in both directions, by the present routing tables.

    With HOST:LINK, packets come from and go to the address of a host at that link, or tunnel. A tunnel has the links
    of its outer packets in parentheses.

    \b
    ewan lab path host1 host2
    ewan lab path phone:lte server
    ewan lab path --lab ring-ospf host1 host2 --json
    """
    as_root(context)
    labs = context.live()
    plan = labs.load(which(labs, lab)).plan
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    forwarding = Forwarding(plan)
    for each in (source, sink):
        host, chosen, link = each.partition(BETWEEN)
        if host not in hosts:
            raise Refused(f"{plan.lab} has no host {host}: hosts are {', '.join(hosts[:10])}")
        if chosen and link not in (own := forwarding.links_of(host)):
            raise Refused(f"{host} has no link {link}: its links are {', '.join(own)}")
    told = labs.routes(plan.lab)
    ways = {f"{a} → {b}": followed(plan, told, a, b) for a, b in ((source, sink), (sink, source))}
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(ways, option=orjson.OPT_APPEND_NEWLINE))
        return
    context.reporter.console.print(grid(f"Paths of {plan.lab}", ["from → to", "links"], [*map(_row, ways.items())]))


def _row(found: tuple[str, RoutedPath]) -> list[str]:
    words, way = found
    return [words, way.broken or ", ".join(_links(way.steps))]


def _links(steps: Sequence[LinkStep], depth: int = 0) -> Iterator[str]:
    """The links; those that a tunnel's outer packets cross are in parentheses after its name."""
    for name, inside in groupby(steps, lambda step: step.tunnels[depth] if len(step.tunnels) > depth else ""):
        if name:
            yield f"{name} ({', '.join(_links(tuple(inside), depth + 1))})"
        else:
            yield from (step.link for step in inside)
