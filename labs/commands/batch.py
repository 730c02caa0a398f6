"""`ewan lab batch`: programs in the nodes of a lab, from its start to its end, in either clock.

In: a description and commands with their nodes and start times. Out: a run directory, and a table of the outcome of
each command.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ewan.labs import batch, clock, descriptions, rundir
from ewan.labs.base import reading
from ewan.labs.base.reporter import Reporter
from ewan.labs.base.sheet import grid
from ewan.labs.commands.errors import Incomplete, Refused, guarded
from ewan.labs.commands.live import host_facts, run_and_remove
from ewan.labs.commands.options import description_options, json_option, machines_option, pass_context, trust_option
from ewan.labs.commands.privileges import as_root, is_virtual
from ewan.labs.commands.virtual import run
from ewan.labs.context import Context
from ewan.labs.plan import Plan, digest
from ewan.labs.record import host_drops
from ewan.labs.record.commands import FORMAT as COMMANDS_FORMAT
from ewan.labs.record.commands import CommandsDocument
from ewan.labs.runtime.program import Program

SHORT_LINES = 25
MOST_SHOWN_BYTES = 1 << 20


class BatchOutput(CommandsDocument, tag=COMMANDS_FORMAT):
    """The commands of a batch, with the lab and the directory that has the output of the commands."""

    lab: str
    plan_sha256: str
    directory: str


@click.command("batch")
@machines_option
@description_options
@trust_option
@click.option("--do", "wanted", metavar="'NODE [at TIME]: COMMAND'", multiple=True, help="run this in a node")
@click.option("--service", "services", metavar="'NODE: COMMAND'", multiple=True, help="run this until all others end")
@click.option(
    "--capture", "captures", metavar="'POINT [FILTER]'", multiple=True, help="keep packets, as in ewan lab capture"
)
@click.option("--for", "longest", metavar="TIME", help="end commands that still run after this time (default: 600s)")
@json_option(lambda: BatchOutput)
@guarded
@pass_context
def batch_command(
    context: Context,
    /,
    topology: str,
    wanted: tuple[str, ...],
    services: tuple[str, ...],
    captures: tuple[str, ...],
    longest: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Bring a lab up, run commands in its nodes, save their output, and take the lab down.

    All commands start side by side, or at their times; a command with characters of the shell (| > * $ …) runs under
    sh. $EWAN_OUT is where commands may put files. Exit status 1 when a command fails. With --capture all commands start
    100 ms later; the packets are in commands/NUMBER-NODE/packets.pcapng of the run's directory.

    \b
    ewan lab batch dumbbell --rtt 100ms --do 'left1: ping -c 5 right1'
    ewan lab batch dumbbell --rtt 100ms --capture 'core:forward icmp' --do 'left1: ping -c 5 right1' --runtime virtual
    ewan lab batch dumbbell --rtt 100ms --service 'right1: iperf3 -s' --do 'left1 at 1s: iperf3 -c right1 -t 10'
    ewan lab batch dumbbell --rtt 100ms --do 'left1: ping -c 5 right1' --machines machines.yaml
    """
    virtual = is_virtual(context)
    facts = host_facts(context)
    plan = descriptions.trusted_plan_of(context, topology, options, virtual=virtual, facts=facts)
    if not wanted:
        raise Refused("nothing to do: write --do 'NODE: COMMAND', for example --do 'left1: ping -c 5 right1'")
    commands = [batch.command(plan, text, "--do", False) for text in wanted]
    commands += [batch.command(plan, text, "--service", True) for text in services]
    if captures:
        commands = batch.after_captures(commands) + [batch.capture(plan, text) for text in captures]
    longest_ns = batch.duration(longest or "600s", "--for")
    program = Program(None, tuple(commands), longest_ns, longest_ns if longest else 0, drops=host_drops.NAMES)
    if not virtual:
        as_root(context)
    directory = rundir.make(plan.lab)
    try:
        with rundir.kept(directory):
            if virtual:
                result = run(context, plan, program, directory, "running")
                document, took = result.document("commands.json"), clock.summary(result)
            else:
                document, took = run_and_remove(context, plan, program, directory), "live"
    except rundir.DiskFullError as error:
        raise Incomplete(str(error)) from None
    if document is None:
        raise Refused(f"interrupted before the commands had started ({directory})")
    rundir.give_back(directory)
    show(context.reporter, plan, document, directory, took, as_json)
    if document["interrupted"]:
        raise Refused(f"interrupted: what the commands wrote until then is in {directory}")
    sys.exit(0 if all(each["status"] == 0 for each in document["commands"] if not each["service"]) else 1)


def show(reporter: Reporter, plan: Plan, document: dict[str, Any], directory: Path, took: str, as_json: bool) -> None:
    """Prints the table of the commands and the end of what each wrote; with `as_json` one JSON document."""
    found = document["commands"]
    if as_json:
        reporter.emit({"lab": plan.lab, "plan_sha256": digest(plan), "directory": str(directory), **document})
        return
    reporter.console.print(grid(f"Commands in {plan.lab}", batch.COLUMNS, batch.rows(document)))
    for number, each in enumerate(found, 1):
        if each["error"] is None:
            excerpt(reporter, f"{number} {each['node']}", directory / each["out"])
            excerpt(reporter, f"{number} {each['node']}, errors", directory / each["err"])
    for line in host_drops.lines(host_drops.read(directory / host_drops.FILE)):
        reporter.console.print(f"\n{line}", soft_wrap=True, markup=False)
    reporter.console.print(f"\n{took}  {directory}", soft_wrap=True)


def excerpt(reporter: Reporter, title: str, path: Path) -> None:
    """Print the output of a command, or only the end of a long one. Its control characters do not reach the
    terminal."""
    text, whole = reading.end_of(path, MOST_SHOWN_BYTES)
    lines = [reading.printable(line, kept="\t") for line in text.rstrip().splitlines()]
    if not lines:
        return
    shown = lines if len(lines) <= SHORT_LINES else lines[-SHORT_LINES // 3 :]
    of = f" of {len(lines)}" if whole else ""
    left = f": the last {len(shown)}{of} lines" if len(shown) < len(lines) or not whole else ""
    reporter.console.print(f"\n{title}{left}", style="dim", soft_wrap=True)
    reporter.console.print("\n".join(shown), markup=False, soft_wrap=True)
