"""What each machine leaves of a run, and the whole run of all: commands.json and links.json, as `ewan-node` has them.

In and out: documents, by `ewan.labs.base.codec`; traffic.json is `ewan.generator.traffic_request.TrafficResult`.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from ewan.labs.base.codec import Document, Struct
from ewan.labs.runtime.answers import LastCounters


class CommandEntry(Struct, omit_defaults=False, kw_only=True):
    """A command and what became of it (emulator/batch/src/command.rs); times from T0. `t0_unix_ns`: of its machine,
    in the whole run, by which what the command stamped is read."""

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
    t0_unix_ns: int | UnsetType | None = UNSET


class CommandsDocument(Document, tag="ewan-commands/1"):
    """commands.json."""

    interrupted: bool
    t0_unix_ns: int | None
    commands: tuple[CommandEntry, ...]


class LinksDocument(Document, tag="ewan-links/1"):
    """links.json: what the links counted, and the spinners; `down`: links without a carrier. What is said of a link is
    passed on as it is."""

    links: tuple[Raw, ...]
    spinners: tuple[LastCounters, ...]
    down: tuple[Raw, ...] = ()
