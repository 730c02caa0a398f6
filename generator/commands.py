"""commands.json of a run as a type: the record that `ewan-node` wrote of each command that it started.

In: a run's directory. Out: the document, or None where there is none; DocumentError for one of other types, and for an
output that would be outside of the run's directory. The beginning of the row of a flow that a command is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from ewan.generator.rows import Row
from ewan.labs.base import documents
from ewan.labs.base.codec import Meta, Struct
from ewan.labs.base.documents import DocumentError
from ewan.labs.record.commands import FILE
from ewan.labs.record.schedule import Flow

_Inside = Annotated[str, Meta(max_length=1024, pattern=r"\A[^/\x00][^\x00]*\Z")]
_Time = Annotated[int, Meta(ge=-(2**62), le=2**62)]


class RunCommand(Struct, forbid_unknown_fields=False):
    """A command: its node, its words, its beginning, and the files with its output, within the run's directory."""

    argv: tuple[str, ...]
    started_ns: _Time | None
    error: str | None
    node: str = ""
    at_ns: _Time | None = None
    out: _Inside = ""
    err: _Inside = ""
    files: _Inside = ""
    t0_unix_ns: _Time | None = None


class RunCommands(Struct, forbid_unknown_fields=False):
    """commands.json; `t0_unix_ns`: T0 as time of day."""

    commands: tuple[RunCommand, ...]
    t0_unix_ns: _Time | None = None


_SAID = ("name", "step", "role", "transfer", "kind", "generator", "source", "sink", "congestion", "scheduled_ns")


def flow_row(flow: Flow, entries: Sequence[RunCommand], who: str) -> tuple[Row, RunCommand | None]:
    """The row of the table of flows as far as a schedule has it, and the flow's command; None where that was not
    started, and the row's `error` says why. `who`: the first words of that."""
    row: Row = {key: getattr(flow, key) for key in (*_SAID, "volume_bytes")}
    row |= {"flow": flow.number, "part": 0}
    if flow.command is None or len(entries) <= flow.command:
        return {**row, "error": f"{who} did not run"}, None
    entry = entries[flow.command]
    if flow.scheduled_ns is None:  # its turn came when other steps had ended
        row["scheduled_ns"] = entry.at_ns
    if entry.error is not None or entry.started_ns is None:
        return {**row, "error": entry.error or f"{who} was not started"}, None
    return row, entry


def read(directory: Path) -> RunCommands | None:
    """The document of a run, None where it did not come to that."""
    try:
        found = documents.read(RunCommands, directory / FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if any(".." in Path(name).parts for each in found.commands for name in (each.out, each.err, each.files)):
        raise DocumentError(f"{directory / FILE}: an output of a command would be outside of the run")
    return found
