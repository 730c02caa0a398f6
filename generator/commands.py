"""commands.json of a run as a type: the record that `ewan-node` wrote of each command that it started.

In: a run's directory. Out: the document, or None where there is none; DocumentError for one of other types, and for an
output that would be outside of the run's directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ewan.labs.base import documents
from ewan.labs.base.codec import Meta, Struct
from ewan.labs.base.documents import DocumentError
from ewan.labs.record.commands import FILE

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


def read(directory: Path) -> RunCommands | None:
    """The document of a run, None where it did not come to that."""
    try:
        found = documents.read(RunCommands, directory / FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if any(".." in Path(name).parts for each in found.commands for name in (each.out, each.err, each.files)):
        raise DocumentError(f"{directory / FILE}: an output of a command would be outside of the run")
    return found
