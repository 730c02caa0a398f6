"""commands.json of a run as a type: what `ewan-node` wrote of each command that it started.

In: a run's directory. Out: the document, or None where there is none; DocumentError for one of other types, and for an
output that would be outside of the run's directory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from ewan.labs.base import documents
from ewan.labs.base.documents import DocumentError

FILE = "commands.json"
_OPEN = ConfigDict(extra="ignore", strict=True)
_Inside = Annotated[str, Field(max_length=1024, pattern=r"\A[^/\x00][^\x00]*\z")]
_Time = Annotated[int, Field(ge=-(2**62), le=2**62)]


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A command: where, what, when it began, and the files that have what it printed, within the run's directory."""

    __pydantic_config__: ClassVar = _OPEN
    argv: tuple[str, ...]
    started_ns: _Time | None
    error: str | None
    node: str = ""
    at_ns: _Time | None = None
    out: _Inside = ""
    err: _Inside = ""
    files: _Inside = ""
    t0_unix_ns: _Time | None = None


@dataclass(frozen=True, slots=True)
class RunCommands:
    """commands.json; `t0_unix_ns`: T0 as time of day."""

    __pydantic_config__: ClassVar = _OPEN
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
