"""schedule.json: which flow of a scenario is which in a run's tables, and what each command of it is.

In: what the generator schedules. Out: the document's bytes, and the typed document again. The generator writes it, its
readers make tables by it, the engine, the store and analysis read it; no other part knows its keys.
"""

from __future__ import annotations

from typing import Literal

from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct
from ewan.labs.forwarding import node_of
from ewan.labs.link.direction import Heading

OWN = "ewan"
"""The generator that is our own; its flows are in the run's traffic request, those of others are commands."""
COMMAND_FLOW = "run"
"""The generator of flows that commands of steps send, and that links count."""
CAPTURE: Literal["capture"] = "capture"
"""The part of a command that captures packets; it stands for the step's name, too."""

Clock = Literal["live", "virtual"]
Part = Literal["client", "server", "command", "capture"]


class CrossedLink(Struct):
    """One direction of a link; `rate_bps` at the start of the run, None for a plain link without a rate."""

    link: str
    direction: Heading
    rate_bps: int | None


class CrossedPath(Struct):
    """The links that payload crosses from one node to another, in order, by the role of the flows that send it.

    Messages between ranks have neither source nor sink: all links between the ranks are together. `parallel`: so are
    the links of several paths of the same flows, one after the other.
    """

    source: str | None
    sink: str | None
    role: str
    hops: tuple[CrossedLink, ...]
    parallel: bool = False


class Iperf3Tool(Struct, tag_field="name", tag="iperf3"):
    """A flow of iperf3. `server`: the command at its sink; `stream`: which of the transfer's, from 0."""

    server: int
    stream: int


class UdtTool(Struct, tag_field="name", tag="udt"):
    """A flow of UDT, as of iperf3."""

    server: int
    stream: int


class DitgTool(Struct, tag_field="name", tag="ditg"):
    """A flow of D-ITG. `log`: the file with its packets."""

    log: str
    server: int
    stream: int


class QuicTool(Struct, tag_field="name", tag="quic"):
    """A flow of QUIC, as of iperf3. `congestion`: the library's own; `qlog`: whether both ends write qlog. `http3`: its
    client receives, and its server sends."""

    server: int
    stream: int
    congestion: str
    qlog: bool
    http3: bool = False


class OpenMpiTool(Struct, tag_field="name", tag="openmpi"):
    """Messages of Open MPI. `sent_bytes`: by each rank in an iteration; None: of a barrier."""

    pattern: str
    iterations: int
    sent_bytes: int | None
    stream: int


class CountedTool(Struct, tag_field="name", tag="counted"):
    """A flow of a command, as one direction of a link counts its packets: those from one of the addresses `sources` to
    one of `sinks` that have one of `ports` at either end; all of them where there are no ports. `sockets`: at this end
    is the command, and only the packets of its own sockets count."""

    link: str
    direction: Heading
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    ports: tuple[int, ...] = ()
    sockets: Literal["source", "sink"] | None = None


FlowTool = Iperf3Tool | UdtTool | DitgTool | QuicTool | OpenMpiTool | CountedTool
"""The tool whose output format a flow's command has."""


class Flow(Struct):
    """A flow of a run. `transfer`: parallel streams of one transfer share it; `scheduled_ns`: None where it waits for
    other steps.

    `source` and `sink` are nodes, or a node with one of its links (labs/forwarding.py).
    `after`: the steps that it waits for, and `when` a state, in words. `members`: nodes that exchange messages.
    `paced_bps`: how its sender is paced. `request`: its place in the traffic request; of a flow of another tool
    `command` is its client's, and `tool` says how its output is read. `addresses`: of its source and its sink, where
    links count flows; `port`: of its sink, where another tool sends it.
    """

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
    when: str = ""
    addresses: tuple[str, ...] = ()
    port: int | None = None

    @property
    def ends(self) -> tuple[str, ...]:
        """The nodes that it needs: those of its ranks, or its two."""
        return self.members or (node_of(self.source), node_of(self.sink))


class ScheduledCommand(Struct):
    """A command of a run. `index`: its place in the program; `at_ns`: None where it waits for the steps `after`;
    `tool`: the generator that it is of, None: of none."""

    index: int
    step: str
    node: str
    at_ns: int | None
    service: bool
    tool: str | None
    part: Part
    after: tuple[str, ...] = ()


class Schedule(Document, tag="ewan-schedule/2", kw_only=True):
    """The schedule from which a run's tables are made. Times count from T0. `series_ns`: width of the bins of goodput,
    0: none."""

    clock: Clock
    begin_ns: int
    longest_ns: int
    series_ns: int
    paths: tuple[CrossedPath, ...]
    flows: tuple[Flow, ...]
    commands: tuple[ScheduledCommand, ...]


class NamedSchedule(Schedule, tag="ewan-schedule/2", kw_only=True):
    """schedule.json: with what was asked for. All that follows of it is in the plan, the program and the rest."""

    scenario: str
    run: str
    parameters: dict[str, str | int]
    seed: int

    @property
    def unnamed(self) -> Schedule:
        """The same without these names."""
        return Schedule(**{name: getattr(self, name) for name in Schedule.__struct_fields__})


def to_json(schedule: NamedSchedule) -> bytes:
    """The bytes of schedule.json."""
    return codec.document(schedule)


def from_json(content: bytes) -> NamedSchedule:
    """The document whose bytes they are; ValueError that names the first wrong place."""
    return codec.decode(NamedSchedule, content, "schedule")


def unnamed_to_json(schedule: NamedSchedule) -> bytes:
    """The bytes that name a result (experiments/store/key.py), and that whoever makes it is given."""
    return codec.document(schedule.unnamed)


def unnamed_from_json(content: bytes) -> Schedule:
    """The schedule whose bytes they are; ValueError as `from_json`."""
    return codec.decode(Schedule, content, "schedule")
