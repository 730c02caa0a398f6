"""schedule.json: which flow of a scenario is which in a run's tables, and what each command of it is.

In: what the generator schedules. Out: the document's bytes, and the typed document again. The generator writes it, its
readers make tables by it, the engine, the store and analysis read it; nobody else knows its keys. What is there for
some flows or commands alone has a default here, and is left out where it has that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import orjson

from ewan.labs.base.typed import plain, read_typed
from ewan.labs.link.direction import Heading

FORMAT: Literal["ewan-schedule/2"] = "ewan-schedule/2"
OWN = "ewan"
"""The generator that is our own; its flows are in the run's traffic request, those of others are commands."""
CAPTURE: Literal["capture"] = "capture"
"""The part of a command that captures packets; it stands for the step's name, too."""

Clock = Literal["live", "virtual"]
Part = Literal["client", "server", "command", "capture"]


@dataclass(frozen=True, slots=True)
class CrossedLink:
    """One direction of a link; `rate_bps` at the start of the run, None for a plain link without a rate."""

    link: str
    direction: Heading
    rate_bps: int | None


@dataclass(frozen=True, slots=True)
class CrossedPath:
    """What payload crosses from one node to another, in order, by the role of the flows that send it.

    Messages between ranks have neither source nor sink: all links between the ranks are together.
    """

    source: str | None
    sink: str | None
    role: str
    hops: tuple[CrossedLink, ...]


@dataclass(frozen=True, slots=True)
class ServedTool:
    """A flow of iperf3 or UDT. `server`: the command at its sink; `stream`: which of the transfer's, from 0."""

    TAG: ClassVar[str] = "name"
    name: Literal["iperf3", "udt"]
    server: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class DitgTool:
    """A flow of D-ITG. `log`: the file with its packets."""

    TAG: ClassVar[str] = "name"
    log: str
    server: int
    stream: int = 0
    name: Literal["ditg"] = field(default="ditg", init=False)


@dataclass(frozen=True, slots=True)
class OpenMpiTool:
    """Messages of Open MPI. `sent_bytes`: by each rank in an iteration; None: of a barrier."""

    TAG: ClassVar[str] = "name"
    pattern: str
    iterations: int
    sent_bytes: int | None
    stream: int = 0
    name: Literal["openmpi"] = field(default="openmpi", init=False)


FlowTool = ServedTool | DitgTool | OpenMpiTool
"""What the output of a flow's command is read with."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow of a run. `transfer`: parallel streams of one transfer share it; `scheduled_ns`: None where it waits for
    other steps.

    `after`: the steps that it waits for. `members`: nodes that exchange messages. `paced_bps`: how its sender is paced.
    `request`: its place in the traffic request; of a flow of another tool `command` is its client's, and `tool` says
    how its output is read.
    """

    SPARSE: ClassVar = {"after", "members", "bidirectional", "paced_bps", "request", "command", "tool"}
    number: int
    name: str
    step: str
    role: str
    transfer: int
    kind: str
    generator: str
    source: str
    sink: str
    congestion: str | None
    scheduled_ns: int | None
    volume_bytes: int | None
    after: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    bidirectional: bool = False
    paced_bps: int | None = None
    request: int | None = None
    command: int | None = None
    tool: FlowTool | None = None

    @property
    def ends(self) -> tuple[str, ...]:
        """The nodes that it needs: those of its ranks, or its two."""
        return self.members or (self.source, self.sink)


@dataclass(frozen=True, slots=True)
class ScheduledCommand:
    """A command of a run. `index`: its place in the program; `at_ns`: None where it waits for the steps `after`;
    `tool`: the generator that it is of, None: of none."""

    SPARSE: ClassVar = {"after"}
    index: int
    step: str
    node: str
    at_ns: int | None
    service: bool
    tool: str | None
    part: Part
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What a run's tables are made by. Times count from T0. `series_ns`: width of the bins of goodput, 0: none."""

    format: Literal["ewan-schedule/2"] = FORMAT
    clock: Clock
    begin_ns: int
    longest_ns: int
    series_ns: int
    paths: tuple[CrossedPath, ...]
    flows: tuple[Flow, ...]
    commands: tuple[ScheduledCommand, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSchedule(Schedule):
    """schedule.json: with what was asked for. All that follows of it is in the plan, the program and the rest."""

    scenario: str
    run: str
    parameters: dict[str, str | int]
    seed: int

    @property
    def unnamed(self) -> Schedule:
        """The same without these names."""
        return Schedule(**{each.name: getattr(self, each.name) for each in fields(Schedule)})


def to_json(schedule: NamedSchedule) -> bytes:
    """The bytes of schedule.json."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(plain(schedule), option=options)


def from_json(content: bytes) -> NamedSchedule:
    """The document whose bytes they are; ValueError as `from_data`."""
    return from_data(orjson.loads(content))


def from_data(data: Any) -> NamedSchedule:
    """The document in JSON data; ValueError that names the first wrong place."""
    found: NamedSchedule = _read(NamedSchedule, data)
    return found


def unnamed_to_json(schedule: NamedSchedule) -> bytes:
    """The bytes that name a result (experiments/store/key.py), and that whoever makes it is given."""
    return orjson.dumps(plain(schedule.unnamed), option=orjson.OPT_SORT_KEYS)


def unnamed_from_json(content: bytes) -> Schedule:
    """The schedule whose bytes they are; ValueError as `from_json`."""
    found: Schedule = _read(Schedule, orjson.loads(content))
    return found


def _read(kind: Any, data: Any) -> Any:
    found = data.get("format") if isinstance(data, dict) else None
    if found is not None and found != FORMAT:
        raise ValueError(f"schedule: format is {str(found)[:80]!r}, this version reads {FORMAT!r}")
    return read_typed(kind, data, "schedule")
