"""The status of a run from its records: complete, or incomplete with the reason in one line.

In: a run's directory. Out: its status. A run is complete when every flow ended without an error, every command with
status 0, every event was applied, and no signal came before the end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from ewan.generator.records import error_of
from ewan.labs.base import documents
from ewan.labs.base.codec import Struct
from ewan.labs.base.reading import one_line
from ewan.labs.record import events
from ewan.labs.record.commands import FILE as COMMANDS
from ewan.labs.record.commands import CommandEntry, CommandsDocument
from ewan.labs.record.traffic import FlowRequest
from ewan.labs.runtime.program import Program

TRAFFIC = "traffic/traffic.json"
INTERRUPTED = "interrupted"
MOST_WORDS = 1000

T = TypeVar("T")


def judge(directory: Path, program: Program) -> str | None:
    """The reason why the run is not complete, in one line; None: it is complete. A command may have written records of
    its own."""
    try:
        why = _judged(directory, program)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        why = f"its records are not those of a run ({type(error).__name__} {error})"
    return None if why is None else one_line(why, MOST_WORDS)


class _FlowEnd(Struct, forbid_unknown_fields=False):
    """The end of a flow, as the generator recorded it."""

    flow: int
    error: str | None
    kind: str = ""
    connected_ns: int | None = None

    @property
    def why(self) -> str | None:
        return error_of({"kind": self.kind, "connected_ns": self.connected_ns, "error": self.error})


class _TrafficEnds(Struct, forbid_unknown_fields=False):
    interrupted: bool
    flows: tuple[_FlowEnd, ...]


def _judged(directory: Path, program: Program) -> str | None:
    traffic, commands = _read(_TrafficEnds, directory / TRAFFIC), _read(CommandsDocument, directory / COMMANDS)
    if (traffic is not None and traffic.interrupted) or (commands is not None and commands.interrupted):
        return INTERRUPTED
    if program.traffic is not None:
        if traffic is None:
            return "its traffic left no record"
        if why := _flows(traffic.flows, program.traffic.flows):
            return why
    if program.commands:
        if commands is None:
            return "its commands left no record"
        if why := _commands(commands.commands):
            return why
    made = events.read(directory)
    if program.events and made is None:
        return "its events left no record"
    return next((f"event on link {each.link}: {each.error}" for each in made or () if each.error), None)


def _flows(records: Sequence[_FlowEnd], flows: Sequence[FlowRequest]) -> str | None:
    wrong = [(record.flow, error) for record in records if (error := record.why)]
    if not wrong:
        return None
    number, error = wrong[0]
    of = f"{len(wrong)} of {len(records)} flows ended with an error, the first was " if len(records) > 1 else ""
    return f"{of}{flows[number].name}: {error}"


def _commands(commands: Sequence[CommandEntry]) -> str | None:
    for each in commands:
        if each.service and each.error is None and each.stopped:
            continue
        if each.error is not None or each.status != 0:
            how = each.error or each.signal or f"status {each.status}"
            if each.stopped:
                how = "still at work when the time was over"
            return f"{shlex.join(each.argv[:2])} in {each.node}: {how} ({each.err})"
    return None


def _read(kind: type[T], path: Path) -> T | None:
    """A document in a file; None where it is not there or was not written whole. ValueError for another one."""
    try:
        found = documents.read_object(path)
    except (FileNotFoundError, documents.DocumentError):
        return None
    return documents.checked(kind, found, path.name)
