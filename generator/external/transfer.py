"""The interface of an external traffic tool: its obstacles, its commands, and the reader of its output. Types only.

Comes in: a step of a scenario with its ends. Goes out: commands, in the order in which they are numbered; after the
run, rows of the run's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson

from ewan.generator.rows import Row, Rows
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.record.schedule import CountedTool, Flow, FlowTool
from ewan.labs.record.traffic import Work
from ewan.labs.runtime.program import Command

if TYPE_CHECKING:
    from ewan.generator.scenario.fields import ScenarioStep
    from ewan.generator.scenario.flows import FlowSettings

LEAD_NS = 100 * NS_PER_MS
"""From a server's start until it listens for certain."""

Obstacle = tuple[str, str]
"""The key that a tool cannot do, and what to write instead."""

T = TypeVar("T")


def printed(kind: type[T], text: bytes) -> T:
    """Read the output of a program as a type; ValueError, in a line, for a part of it or for another text."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError("its output is not whole") from None
    return codec.decode(kind, text, "its output")


@dataclass(frozen=True, slots=True)
class ToolTransfer:
    """One member of a step; `number` is that of its first command, which ports and files of logs are named by.
    `members`: the nodes of ranks, of which source and sink are the first two. `waits`: `at_ns` counts from the end of
    other steps, not from T0. `work`: of its first stream. `source_address`: of the source, as
    `address` is of the sink."""

    step: ScenarioStep
    settings: FlowSettings
    source: str
    sink: str
    address: str
    source_address: str
    at_ns: int
    for_ns: int | None
    number: int
    series_ns: int
    sample_ns: int
    seed: int
    members: tuple[str, ...] = ()
    waits: bool = False
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class TransferCommands:
    """The commands of one transfer. `client`: the number of the sending command; `tool`: data that reading its output
    needs, None where the output suffices; `port`: of the sink, by which its data are found; `node_congestion`: nodes
    whose default congestion control the client sets."""

    commands: tuple[Command, ...]
    client: int
    tool: FlowTool | None = None
    port: int | None = None
    node_congestion: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a client for one stream. `row`: the scenario's data of it, as a row of the table of flows;
    `copied`, `overtaken`: whether links of its lab may copy packets, and let one overtake another; `directory`: where
    its command wrote files; `series_ns`: width of the bins of goodput, 0 for none; `server`: the output of the command
    at its sink, and `server_directory` where that wrote files; `ahead_ns`: how far the clock there is ahead of the
    client's."""

    flow: Flow
    row: Row
    stdout: bytes
    stderr: str
    directory: Path
    started_ns: int
    series_ns: int
    server: Path | None = None
    server_directory: Path | None = None
    ahead_ns: int = 0
    copied: bool = False
    overtaken: bool = False

    @property
    def stream(self) -> int:
        """The number of this stream among the transfer's parallel streams, from 0."""
        tool = self.flow.tool
        return 0 if tool is None or isinstance(tool, CountedTool) else tool.stream


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `programs`: those that must be there, each with its Debian package; `about`: its abilities and the data
    that it does not report, for the manual; `obstacle`: None where it can do all of a step; `rows`: a flow that failed
    has an `error`; `remedy`: the remedy where a program is missing, if it is not to install the package; `lead_ns`: the
    time by which its commands start before a transfer; `between_machines`: whether its ends may be on two machines;
    `reads_by`: those of its programs that read its results; `source_port`: of a stream's connection, None where the
    output does not have it; `chooses_link`: whether its ends may be links of hosts."""

    name: str
    programs: Mapping[str, str]
    about: str
    obstacle: Callable[[ScenarioStep, FlowSettings], Obstacle | None]
    commands: Callable[[ToolTransfer], TransferCommands]
    rows: Callable[[Output], Rows]
    remedy: str = ""
    lead_ns: int = LEAD_NS
    between_machines: bool = True
    reads_by: tuple[str, ...] = ()
    source_port: Callable[[Output], int | None] | None = None
    chooses_link: bool = False
