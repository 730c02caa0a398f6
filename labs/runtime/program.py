"""What a run does in its lab: preparations, then probes, then commands side by side. Pure.

In: a probe request, commands with their nodes and start times, and what must be done before both. Out: the JSON that
`ewan-node init` (virtual clock) and `ewan-node batch` (live clock) execute, the same in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

FORMAT = "ewan-program/1"


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments in a node, `at_ns` after T0; a service is ended when all others have ended."""

    node: str
    argv: tuple[str, ...]
    at_ns: int = 0
    service: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A program and its arguments in a node, that runs before the probe; one that fails ends the run."""

    node: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """`longest_ns`: how long after T0 commands may run. `expected_ns`: about how long all of it takes, for progress."""

    probe: Mapping[str, Any] | None = None
    commands: tuple[Command, ...] = ()
    longest_ns: int = 0
    expected_ns: int = 0
    prepare: tuple[Step, ...] = ()

    def to_json(self) -> bytes:
        document: dict[str, Any] = {
            "format": FORMAT,
            "probe": self.probe,
            "commands": self.commands,
            "longest_ns": self.longest_ns,
        }
        if self.prepare:
            document["prepare"] = self.prepare
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
