"""Commands in the nodes of a lab: from the words of the command line, and in a table of their outcomes. Pure.

In: `left1 at 1s: iperf3 -c right1`, a plan; commands.json. Out: commands of a program; rows of text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from ewan.labs.base import shell
from ewan.labs.base.codec import from_data, replace
from ewan.labs.base.units import NS_PER_DAY, Duration, UnitError
from ewan.labs.base.units.shown import about
from ewan.labs.capture import bpf, points
from ewan.labs.capture.words import FILE, PART, Bounds, options
from ewan.labs.plan import Plan
from ewan.labs.record.commands import FILE as COMMANDS
from ewan.labs.record.commands import CommandEntry, CommandsDocument
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command
from ewan.labs.runtime.services import OURSELVES

CAPTURE_BYTES = 64_000_000
"""The size of each file of a capture; later packets are counted and left out."""
AHEAD_NS = 100_000_000
"""Captures begin so long before all else."""
_DO = re.compile(r"\s*(?P<node>[^\s:]+)(?:\s+at\s+(?P<at>[^:]+?))?\s*:\s*(?P<words>\S.*)", re.DOTALL)
LONGEST_NS = NS_PER_DAY
COLUMNS = ["", "node", "command", "start", "duration", "status", "output"]


def command(plan: Plan, text: str, option: str, service: bool) -> Command:
    """`left1 at 1s: iperf3 -c right1` as a command of the plan's lab."""
    match = _DO.fullmatch(text)
    if match is None:
        raise LabError(f"{option} \"{text}\": write it as 'left1: ping right1' or 'left1 at 1s: ping right1'")
    names = [node.name for node in plan.nodes]
    if match["node"] not in names:
        shown = ", ".join([node.name for node in plan.nodes if node.kind == "host"][:10])
        raise LabError(f'{option} "{text}": lab {plan.lab} has no node {match["node"]}: hosts are {shown}')
    at_ns = duration(match["at"], option) if match["at"] else 0
    try:
        words = shell.argv(match["words"])
    except ValueError as error:
        raise LabError(f'{option} "{text}": {error}') from None
    return Command(match["node"], words, at_ns, service)


def capture(plan: Plan, text: str) -> Command:
    """`left1`, `core:forward tcp port 80` as a service of the plan's lab: where, and a filter."""
    where, _, program = text.strip().partition(" ")
    taps = points.taps(plan, where)
    told = options(plan.lab, taps, Bounds(most_bytes=CAPTURE_BYTES), bpf.compiled(program))
    return Command(taps[0].node, (OURSELVES, PART, *told, FILE), 0, service=True)


def after_captures(commands: Sequence[Command]) -> list[Command]:
    """The commands later by as much as captures need to begin."""
    return [replace(each, at_ns=each.at_ns + AHEAD_NS) for each in commands]


def duration(text: str, option: str) -> int:
    """Nanoseconds; LabError, which names the option, for what is no duration."""
    try:
        return Duration.parse(text, LONGEST_NS).ns
    except UnitError as error:
        raise LabError(f'{option} "{text}": {error}') from None


def rows(document: object) -> list[list[str]]:
    """A row of `COLUMNS` for each command of commands.json."""
    found = from_data(CommandsDocument, document, COMMANDS)
    return [_row(number, each, found.interrupted) for number, each in enumerate(found.commands, 1)]


def _row(number: int, each: CommandEntry, interrupted: bool) -> list[str]:
    began, ended = each.started_ns, each.ended_ns
    started = "–" if began is None else about(began, "time", 6)
    lasted = "–" if ended is None or began is None else about(ended - began, "time", 6)
    return [str(number), each.node, _shown(each.argv), started, lasted, status(each, interrupted), each.out]


def _shown(argv: Sequence[str]) -> str:
    if tuple(argv[:2]) == ("sh", "-c"):
        return argv[2]
    if tuple(argv[:2]) == (OURSELVES, PART):
        return PART  # the rest is taps in JSON
    return shlex.join(argv)


def status(entry: CommandEntry, interrupted: bool) -> str:
    """The end of a command, in words."""
    if entry.error is not None:
        return entry.error
    if entry.stopped:
        if entry.service:
            return "ended with the others"
        return "interrupted" if interrupted else "ended: out of time"
    return str(entry.status) if entry.signal is None else entry.signal
