"""What an external tool is asked to do, and what it becomes: commands for nodes. Types only.

Comes in: a step of a scenario with its ends. Goes out: commands, in the order in which they are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labs.runtime.program import Command
from labs.units import NS_PER_MS

if TYPE_CHECKING:
    from generator.scenario.fields import Step
    from generator.scenario.flows import FlowSettings

LEAD_NS = 100 * NS_PER_MS
"""From a server's start until it listens for certain."""

Obstacle = tuple[str, str]
"""The key that a tool cannot do, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One member of a step; `number` is that of its first command, which ports and files of logs are named by."""

    step: Step
    settings: FlowSettings
    source: str
    sink: str
    address: str
    at_ns: int
    for_ns: int | None
    number: int
    series_ns: int
    seed: int


@dataclass(frozen=True, slots=True)
class Made:
    """`client`: which of the commands sends; `tool`: what its output must be read with."""

    commands: tuple[Command, ...]
    client: int
    tool: dict[str, Any] = field(default_factory=dict)
