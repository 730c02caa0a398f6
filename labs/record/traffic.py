"""What `ewan-node traffic` is asked for: the request for a run's flows, as generator/src/traffic/request.rs reads it.

In: flows with their ends, times, sockets and work. Out: the data of the request, for a program or a file of its own,
and the typed request again. Integers have their unit in the key. What is there for some flows alone has a default here,
and is left out where it has that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ewan.labs.base.typed import plain, read_typed
from ewan.labs.record.schedule import Clock

FORMAT: Literal["ewan-traffic/1"] = "ewan-traffic/1"

Number = int | float


@dataclass(frozen=True, slots=True)
class ConstantLaw:
    """Always the same."""

    TAG: ClassVar[str] = "law"
    value: Number
    law: Literal["constant"] = field(default="constant", init=False)


@dataclass(frozen=True, slots=True)
class UniformLaw:
    """From `low` to `high`, each as likely; no draw of any law is above its `most`."""

    TAG: ClassVar[str] = "law"
    SPARSE: ClassVar = {"most"}
    low: Number
    high: Number
    most: Number | None = None
    law: Literal["uniform"] = field(default="uniform", init=False)


@dataclass(frozen=True, slots=True)
class ExponentialLaw:
    """Times between arrivals by Poisson."""

    TAG: ClassVar[str] = "law"
    SPARSE: ClassVar = {"most"}
    mean: Number
    most: Number | None = None
    law: Literal["exponential"] = field(default="exponential", init=False)


@dataclass(frozen=True, slots=True)
class ShapedLaw:
    """A law of a mean and a shape."""

    TAG: ClassVar[str] = "law"
    SPARSE: ClassVar = {"most"}
    law: Literal["pareto", "weibull", "gamma"]
    mean: Number
    shape: Number
    most: Number | None = None


@dataclass(frozen=True, slots=True)
class NormalLaw:
    """Normal, with draws below 0 set to 0."""

    TAG: ClassVar[str] = "law"
    SPARSE: ClassVar = {"most"}
    mean: Number
    deviation: Number
    most: Number | None = None
    law: Literal["normal"] = field(default="normal", init=False)


RequestLaw = ConstantLaw | UniformLaw | ExponentialLaw | ShapedLaw | NormalLaw
"""How sizes (bytes) or times (ns) are drawn; generator/src/traffic/law.rs."""


def usual(law: RequestLaw) -> Number:
    """About the mean of what is drawn."""
    if isinstance(law, UniformLaw):
        return (law.low + law.high) / 2
    return law.value if isinstance(law, ConstantLaw) else law.mean


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a flow or a stream of packets begins or ends: the path of a network namespace, and an address in it."""

    netns: str
    address: str

    @property
    def data(self) -> dict[str, str]:
        """As a request to `ewan-node probe` has it."""
        return {"netns": self.netns, "address": self.address}


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """What a flow wants of its sockets; generator/src/socket.rs. TCP has always a congestion control.

    `class_`: of the sender's queueing discipline, which paces it.
    """

    SPARSE: ClassVar = {"class_"}
    congestion: str | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    window_bytes: int | None = None
    mss_bytes: int | None = None
    dscp: int = 0
    ecn: bool = False
    nodelay: bool = False
    class_: int | None = None


@dataclass(frozen=True, slots=True)
class BulkWork:
    """`bytes` each way; None: until the flow's stop."""

    bytes: int | None = None
    bidirectional: bool = False
    kind: Literal["bulk"] = field(default="bulk", init=False)


@dataclass(frozen=True, slots=True)
class ArrivalsWork:
    """Connections that arrive at random times, each of which sends a volume; `count` None: until the flow's stop."""

    count: int | None
    interval_ns: RequestLaw
    size_bytes: RequestLaw
    kind: Literal["arrivals"] = field(default="arrivals", init=False)


@dataclass(frozen=True, slots=True)
class RequestsWork:
    """A session of requests and answers; `count` as above."""

    count: int | None
    request_bytes: RequestLaw
    response_bytes: RequestLaw
    think_ns: RequestLaw
    new_connection: bool = False
    kind: Literal["requests"] = field(default="requests", init=False)


@dataclass(frozen=True, slots=True)
class UdpWork:
    """Packets at exact times; `count` as above. `transit_ns`: the longest time that one may be on its way."""

    SPARSE: ClassVar = {"transit_ns"}
    count: int | None
    size_bytes: RequestLaw
    interval_ns: RequestLaw
    on_ns: RequestLaw | None = None
    off_ns: RequestLaw | None = None
    transit_ns: int | None = None
    kind: Literal["udp"] = field(default="udp", init=False)


@dataclass(frozen=True, slots=True)
class MessagesWork:
    """Message passing between ranks, in their order."""

    pattern: Literal["ping-pong", "all-to-all", "neighbour-exchange", "barrier"]
    iterations: int
    size_bytes: RequestLaw
    compute_ns: RequestLaw
    ranks: tuple[Endpoint, ...] = ()
    kind: Literal["messages"] = field(default="messages", init=False)


Work = BulkWork | ArrivalsWork | RequestsWork | UdpWork | MessagesWork


@dataclass(frozen=True, slots=True)
class Half:
    """One end of a flow, whose other end is in a process on another machine; generator/src/traffic/half.rs."""

    side: Literal["source", "sink"]
    port: int
    run: int
    clock_ns: int


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """A flow. Times count from T0, or from the end of the steps that it waits for.

    `step`: the step that it is of, where any step waits for another; `after`: those that it waits for. `number`: in the
    whole run, and `half`: the end that is here, where a process has a part of the run's flows. `sample_ns`: other than
    the request's. Messages have ranks instead of two ends.
    """

    SPARSE: ClassVar = {"from_", "to", "step", "after", "number", "half", "sample_ns"}
    name: str
    work: Work
    socket: SocketOptions
    start_ns: int = 0
    stop_ns: int | None = None
    from_: Endpoint | None = None
    to: Endpoint | None = None
    step: int | None = None
    after: tuple[int, ...] | None = None
    number: int | None = None
    half: Half | None = None
    sample_ns: int | None = None

    @property
    def ends(self) -> tuple[Endpoint, ...]:
        """Its ranks, or its two ends."""
        if isinstance(self.work, MessagesWork):
            return self.work.ranks
        return tuple(end for end in (self.from_, self.to) if end is not None)

    @property
    def waits_for(self) -> tuple[int, ...]:
        """Steps that must have ended."""
        return self.after or ()

    @property
    def bidirectional(self) -> bool:
        """Whether both ends send on one connection."""
        return isinstance(self.work, BulkWork) and self.work.bidirectional


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRequest:
    """All flows of a process. `cpus`: where its threads may run, none: anywhere. `sample_ns`: between two looks at each
    sender, `series_ns`: width of the bins of goodput, 0: none. What still runs after `longest_ns` is ended.

    `told`: steps whose ends this process tells others. `elsewhere`: steps that others carry out.
    """

    SPARSE: ClassVar = {"told", "elsewhere"}
    format: Literal["ewan-traffic/1"] = FORMAT
    clock: Clock
    cpus: tuple[int, ...]
    seed: int
    longest_ns: int
    flows: tuple[FlowRequest, ...]
    sample_ns: int = 0
    series_ns: int = 0
    told: tuple[int, ...] = ()
    elsewhere: tuple[int, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """As a program has it, or a file of its own."""
        data: dict[str, Any] = plain(self)
        return data


def from_data(data: Any, where: str = "traffic") -> TrafficRequest:
    """What `to_data` gave; ValueError that names the first wrong place, below `where`."""
    request: TrafficRequest = read_typed(TrafficRequest, data, where)
    return request
