"""commands.json of a run as a type: what `ewan-node` wrote of each command that it started.

In: a run's directory. Out: the document, or None where there is none; DocumentError for one of other types, and for an
output that would be outside of the run's directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NotRequired, cast

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from ewan.labs.base import documents
from ewan.labs.base.documents import DocumentError

FILE = "commands.json"
_OPEN = ConfigDict(extra="allow", strict=True)
_Inside = Annotated[str, Field(max_length=1024, pattern=r"\A[^/\x00][^\x00]*\z")]
_Time = Annotated[int, Field(ge=-(2**62), le=2**62)]


class Entry(TypedDict):
    """A command: where, what, when it began, and the files that have what it printed, within the run's directory."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]

    node: NotRequired[str]
    argv: list[str]
    at_ns: NotRequired[_Time | None]
    started_ns: _Time | None
    error: str | None
    out: NotRequired[_Inside]
    err: NotRequired[_Inside]
    files: NotRequired[_Inside]
    t0_unix_ns: NotRequired[_Time | None]


class Commands(TypedDict):
    """commands.json; `t0_unix_ns`: T0 as time of day."""

    __pydantic_config__ = _OPEN  # type: ignore[misc]

    commands: list[Entry]
    t0_unix_ns: NotRequired[_Time | None]


def read(directory: Path) -> dict[str, Any] | None:
    """The document of a run, None where it did not come to that."""
    try:
        found = documents.read(Commands, directory / FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    for each in found["commands"]:
        if any(".." in Path(str(each.get(name, ""))).parts for name in ("out", "err", "files")):
            raise DocumentError(f"{directory / FILE}: an output of a command would be outside of the run")
    return cast(dict[str, Any], found)
