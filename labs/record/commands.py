"""commands.json of a run: each command that was started in its nodes, and its outcome, as `ewan-node` writes it.

In and out: the document, by `ewan.labs.base.codec`. Readers of outputs take what they need of it, also of runs of older
versions (generator/commands.py).
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ewan.labs.base.codec import Document, Struct

FILE = "commands.json"
FORMAT = "ewan-commands/1"


class CommandEntry(Struct, omit_defaults=False, kw_only=True):
    """A command and its outcome (emulator/batch/src/command.rs); times from T0. `ready_ns`: when a service first
    listened at its port. `t0_unix_ns`: of its machine, in the whole run, by which what the command stamped is read."""

    node: str
    argv: tuple[str, ...]
    at_ns: int | None
    service: bool
    started_ns: int | None = None
    ended_ns: int | None = None
    status: int | None = None
    signal: str | None = None
    stopped: bool = False
    error: str | None
    out: str
    err: str
    files: str
    ready_ns: int | UnsetType | None = UNSET
    t0_unix_ns: int | UnsetType | None = UNSET


class CommandsDocument(Document, tag=FORMAT):
    """commands.json."""

    interrupted: bool
    t0_unix_ns: int | None
    commands: tuple[CommandEntry, ...]
