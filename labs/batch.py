"""The command `batch`: programs in the nodes of a lab, from its start to its end, in either clock.

In: a description and commands with their nodes and start times. Out: a run directory, and a table of what became of
each command.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import orjson

from labs import cli, clock, rundir, shell
from labs.commands import Incomplete
from labs.plan import Plan, digest, to_json
from labs.runtime.program import Command, Program
from labs.units import NS_PER_SECOND, Duration, UnitError, about

_DO = re.compile(r"\s*(?P<node>[^\s:]+)(?:\s+at\s+(?P<at>[^:]+?))?\s*:\s*(?P<words>\S.*)", re.DOTALL)
LONGEST_NS = 24 * 3600 * NS_PER_SECOND
SHORT_LINES = 25


@click.command("batch")
@cli.description_options
@click.option("--do", "wanted", metavar="'NODE [at TIME]: COMMAND'", multiple=True, help="run this in a node")
@click.option("--service", "services", metavar="'NODE: COMMAND'", multiple=True, help="run this until all others end")
@click.option("--for", "longest", metavar="TIME", help="when what still runs ends (default: 600s)")
@cli.json_option
@cli.guarded
def batch_command(
    topology: str,
    wanted: tuple[str, ...],
    services: tuple[str, ...],
    longest: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Bring a lab up, run commands in its nodes, keep what they print, take the lab down.

    All commands start side by side, or at their times; a command with characters of the shell (| > * $ …) runs under
    sh. $EWAN_OUT is where commands may put files. Exit status 1 when a command fails.

    \b
    ewan batch dumbbell --rtt 100ms --do 'left1: ping -c 5 right1'
    ewan batch dumbbell --rtt 100ms --service 'right1: iperf3 -s' --do 'left1 at 1s: iperf3 -c right1 -t 10'
    """
    virtual = cli.is_virtual(options["runtime_name"])
    plan = cli.plan_of(topology, options, virtual)
    if not wanted:
        raise cli.fail("nothing to do: write --do 'NODE: COMMAND', for example --do 'left1: ping -c 5 right1'")
    commands = [command(plan, text, "--do", False) for text in wanted]
    commands += [command(plan, text, "--service", True) for text in services]
    longest_ns = duration(longest or "600s", "--for")
    program = Program(None, tuple(commands), longest_ns, longest_ns if longest else 0)
    if not virtual:
        cli.as_root()
    directory = rundir.make(plan.lab)
    try:
        with rundir.kept(directory):
            if virtual:
                result = clock.run(plan, program, directory, "running")
                document, took = result.document("commands.json"), clock.summary(result)
            else:
                document, took = live(plan, program, directory, options["runtime_name"]), "live"
    except rundir.DiskFullError as error:
        raise Incomplete(str(error)) from None
    if document is None:
        raise cli.fail(f"interrupted before the commands had started ({directory})")
    rundir.give_back(directory)
    show(plan, document, directory, took, as_json)
    if document["interrupted"]:
        raise cli.fail(f"interrupted: what the commands wrote until then is in {directory}")
    sys.exit(0 if all(each["status"] == 0 for each in document["commands"] if not each["service"]) else 1)


def command(plan: Plan, text: str, option: str, service: bool) -> Command:
    """`left1 at 1s: iperf3 -c right1` as a command of the plan's lab."""
    match = _DO.fullmatch(text)
    if match is None:
        raise cli.fail(f"{option} \"{text}\": write it as 'left1: ping right1' or 'left1 at 1s: ping right1'")
    names = [node.name for node in plan.nodes]
    if match["node"] not in names:
        shown = ", ".join([node.name for node in plan.nodes if node.kind == "host"][:10])
        raise cli.fail(f'{option} "{text}": lab {plan.lab} has no node {match["node"]}: hosts are {shown}')
    at_ns = duration(match["at"], option) if match["at"] else 0
    try:
        words = shell.argv(match["words"])
    except ValueError as error:
        raise cli.fail(f'{option} "{text}": {error}') from None
    return Command(match["node"], words, at_ns, service)


def duration(text: str, option: str) -> int:
    try:
        return Duration.parse(text, LONGEST_NS).ns
    except UnitError as error:
        raise cli.fail(f'{option} "{text}": {error}') from None


def live(plan: Plan, program: Program, directory: Path, choice: str) -> dict[str, Any] | None:
    """Up, run, down; whatever happens, nothing of the lab is left."""
    (directory / "plan.json").write_bytes(to_json(plan))
    cli.bring_up(plan, choice)
    try:
        with cli.messages.status(f"running {plan.lab}"):
            cli.runtime().batch(plan.lab, program, directory)
    finally:
        removed = cli.runtime().down(plan.lab)
    path = directory / "links.json"
    # The program leaves the counters of all links; a spinner's last ones come when it ends.
    told = orjson.loads(path.read_bytes()) if path.exists() else {"format": "ewan-links/1", "links": []}
    told["spinners"] = removed.get("spinners", [])
    path.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    path = directory / "commands.json"
    document: dict[str, Any] | None = orjson.loads(path.read_bytes()) if path.exists() else None
    return document


def show(plan: Plan, document: dict[str, Any], directory: Path, took: str, as_json: bool) -> None:
    found = document["commands"]
    if as_json:
        cli.emit({"lab": plan.lab, "plan_sha256": digest(plan), "directory": str(directory), **document})
        return
    rows = []
    for number, each in enumerate(found, 1):
        started = "–" if each["started_ns"] is None else about(each["started_ns"], "time", 6)
        lasted = "–" if each["ended_ns"] is None else about(each["ended_ns"] - each["started_ns"], "time", 6)
        words = each["argv"][2] if each["argv"][:2] == ["sh", "-c"] else shlex.join(each["argv"])
        rows.append(
            [str(number), each["node"], words, started, lasted, status(each, document["interrupted"]), each["out"]]
        )
    columns = ["", "node", "command", "start", "duration", "status", "output"]
    cli.console.print(cli.grid(f"Commands in {plan.lab}", columns, rows))
    for number, each in enumerate(found, 1):
        if each["error"] is None:
            excerpt(f"{number} {each['node']}", directory / each["out"])
            excerpt(f"{number} {each['node']}, errors", directory / each["err"])
    cli.console.print(f"\n{took}  {directory}", soft_wrap=True)


def excerpt(title: str, path: Path) -> None:
    """What a command wrote; of much its end."""
    lines = path.read_text(errors="replace").rstrip().splitlines()
    if not lines:
        return
    shown = lines if len(lines) <= SHORT_LINES else lines[-SHORT_LINES // 3 :]
    left = f": the last {len(shown)} of {len(lines)} lines" if len(shown) < len(lines) else ""
    cli.console.print(f"\n[dim]{title}{left}[/]", soft_wrap=True)
    cli.console.print("\n".join(shown), markup=False, soft_wrap=True)


def status(entry: dict[str, Any], interrupted: bool) -> str:
    if entry["error"] is not None:
        return str(entry["error"])
    if entry["stopped"]:
        if entry["service"]:
            return "ended with the others"
        return "interrupted" if interrupted else "ended: out of time"
    return str(entry["status"]) if entry["signal"] is None else str(entry["signal"])
