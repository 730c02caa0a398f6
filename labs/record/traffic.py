"""The request to `ewan-node traffic` for a run's flows, as emulator/traffic/src/flows/request.rs reads it.

In: flows with their ends, times, sockets and work. Out: the request, for a program or a file of its own. Integers have
their unit in the key.
"""

from __future__ import annotations

from typing import Literal

from ewan.labs.base.codec import Document, Struct, Variant, field
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record.schedule import Clock

Number = int | float
Relation = Literal["=", "!=", "<", "<=", ">", ">="]


class ConstantLaw(Struct, tag_field="law", tag="constant"):
    """Always the same."""

    value: Number


class UniformLaw(Struct, tag_field="law", tag="uniform"):
    """From `low` to `high`, each as likely; no draw of any law is above its `most`."""

    low: Number
    high: Number
    most: Number | None = None


class ExponentialLaw(Struct, tag_field="law", tag="exponential"):
    """Times between arrivals by Poisson."""

    mean: Number
    most: Number | None = None


class ShapedLaw(Struct, tag_field="law"):
    """A law of a mean and a shape."""

    mean: Number
    shape: Number
    most: Number | None = None


class ParetoLaw(ShapedLaw, tag="pareto"):
    """A Pareto distribution."""


class WeibullLaw(ShapedLaw, tag="weibull"):
    """A Weibull distribution."""


class GammaLaw(ShapedLaw, tag="gamma"):
    """A gamma distribution."""


class NormalLaw(Struct, tag_field="law", tag="normal"):
    """Normal, with draws below 0 set to 0."""

    mean: Number
    deviation: Number
    most: Number | None = None


RequestLaw = ConstantLaw | UniformLaw | ExponentialLaw | ParetoLaw | WeibullLaw | GammaLaw | NormalLaw
"""The law by which sizes (bytes) or times (ns) are drawn; emulator/traffic/src/flows/law.rs."""


def usual(law: RequestLaw) -> Number:
    """About the mean of what is drawn."""
    if isinstance(law, UniformLaw):
        return (law.low + law.high) / 2
    return law.value if isinstance(law, ConstantLaw) else law.mean


class Endpoint(Struct):
    """The end of a flow or of a stream of packets: the path of a network namespace, and an address in it."""

    netns: str
    address: str

    @property
    def data(self) -> dict[str, str]:
        """As a request to `ewan-node probe` has it."""
        return {"netns": self.netns, "address": self.address}


class Multipath(Struct):
    """The paths of a flow, so many in all: emulator/traffic/src/multipath.rs. `from_` and `to`: the addresses of its
    ends besides those that it connects by."""

    paths: int
    scheduler: str
    from_: tuple[str, ...] = field(default=(), name="from")
    to: tuple[str, ...] = ()


class SocketOptions(Struct):
    """The socket options of a flow; emulator/traffic/src/socket.rs. TCP has always a congestion control.

    `class_`: of the sender's queueing discipline, which paces it.
    """

    congestion: str | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    window_bytes: int | None = None
    mss_bytes: int | None = None
    dscp: int = 0
    ecn: bool = False
    nodelay: bool = False
    class_: int | None = field(default=None, name="class")
    multipath: Multipath | None = None


class Writes(Struct):
    """The writes of an application that limits its flow: their sizes, and the times from one to the next, which run in
    the periods `on_ns` only."""

    size_bytes: RequestLaw
    interval_ns: RequestLaw
    on_ns: RequestLaw | None = None
    off_ns: RequestLaw | None = None


class BulkWork(Variant, tag="bulk"):
    """`bytes` each way; None: until the flow's stop. `writes`: None: all at once."""

    bytes: int | None = None
    bidirectional: bool = False
    writes: Writes | None = None


class ArrivalsWork(Variant, tag="arrivals"):
    """Connections that arrive at random times, each of which sends a volume; `count` None: until the flow's stop."""

    count: int | None
    interval_ns: RequestLaw
    size_bytes: RequestLaw


class RequestsWork(Variant, tag="requests"):
    """A session of requests and answers; `count` as above."""

    count: int | None
    request_bytes: RequestLaw
    response_bytes: RequestLaw
    think_ns: RequestLaw
    new_connection: bool = False


class UdpWork(Variant, tag="udp"):
    """Packets at exact times; `count` as above. `transit_ns`: the longest time that one may be on its way."""

    count: int | None
    size_bytes: RequestLaw
    interval_ns: RequestLaw
    on_ns: RequestLaw | None = None
    off_ns: RequestLaw | None = None
    transit_ns: int | None = None


class MessagesWork(Variant, tag="messages"):
    """Message passing between ranks, in their order."""

    pattern: Literal["ping-pong", "all-to-all", "neighbour-exchange", "barrier"]
    iterations: int
    size_bytes: RequestLaw
    compute_ns: RequestLaw
    ranks: tuple[Endpoint, ...] = ()


RateControl = Literal["none", "gcc", "scream"]
"""The rate controls of media; emulator/traffic/src/media/control.rs."""


LEAST_PAUSE_NS = 2 * NS_PER_SECOND
"""A source of video that captures no frame for so long has paused."""


class MediaPause(Struct):
    """When a source stops, from its flow's start, and for how long."""

    at_ns: int
    for_ns: int


class MediaWork(Variant, tag="media"):
    """Interactive video; emulator/traffic/src/media. `key_interval_ns` None: key frames only at the start and where the
    receiver asks for one. `packet_bytes`: the most of UDP payload. `even`: all frames are alike. `l4s`: sent as ECT(1).
    `transit_ns` as above."""

    control: RateControl
    initial_bps: int
    least_bps: int
    most_bps: int
    frames_per_second: Number
    packet_bytes: int
    key_interval_ns: int | None = None
    even: bool = False
    l4s: bool = False
    pause: MediaPause | None = None
    transit_ns: int | None = None


Work = BulkWork | ArrivalsWork | RequestsWork | UdpWork | MessagesWork | MediaWork


class Half(Struct):
    """One end of a flow, whose other end is in a process on another machine;
    emulator/traffic/src/flows/local_end.rs."""

    side: Literal["source", "sink"]
    port: int
    run: int
    clock_ns: int


class FlowRequest(Struct):
    """A flow. Times count from T0, or from the end of the steps that it waits for.

    `step`: the step that it is of, where any step waits for another; `after`: those that it waits for. `number`: in the
    whole run, and `half`: the end that is here, where a process has a part of the run's flows. `sample_ns`: other than
    the request's. Messages have ranks instead of two ends.
    """

    name: str
    work: Work
    socket: SocketOptions
    start_ns: int = 0
    stop_ns: int | None = None
    from_: Endpoint | None = field(default=None, name="from")
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
        """Return whether both ends send on one connection."""
        return isinstance(self.work, BulkWork) and self.work.bidirectional


class StateField(Struct):
    """A variable in the private state of a congestion control; emulator/traffic/src/congestion.rs.

    `offset`, `bytes`: the word that holds it, of 1, 2, 4 or 8 bytes. `bit_offset`: its first bit, counted from the
    lowest of the word, and `bits`: its width; 0: to the end of the word. `values`: words for its values.
    """

    name: str
    offset: int
    bytes: int
    signed: bool = False
    bit_offset: int = 0
    bits: int = 0
    values: dict[str, str] = field(default_factory=dict)


class StateComparison(Struct):
    """A variable of a congestion control's state, and the number or the word that its value is compared with."""

    variable: str
    is_: Relation = field(name="is")
    value: str

    @property
    def is_word(self) -> bool:
        """Return whether it is compared with a word."""
        return self.value[0].isalpha() or self.value[0] == "_"

    @property
    def words(self) -> str:
        """`mode DRAIN`, `losses >= 2`."""
        return f"{self.variable} {'' if self.is_ == '=' else self.is_ + ' '}{self.value}"


class StateCondition(Struct):
    """A state that others wait for; emulator/traffic/src/flows/condition.rs. It counts as the step `step`, which ends
    when all of `state` holds for one sender of the step `of`, looked at each `every_ns`."""

    step: int
    of: int
    every_ns: int
    state: tuple[StateComparison, ...]


class TrafficRequest(Document, tag="ewan-traffic/1", kw_only=True):
    """All flows of a process. `cpus`: where its threads may run, none: anywhere. `sample_ns`: between two looks at each
    sender, `series_ns`: width of the bins of goodput, 0: none. What still runs after `longest_ns` is ended.

    `told`: steps whose ends this process tells others. `elsewhere`: steps that others carry out. `congestion_state`:
    the layouts of the private states of congestion controls, by their names. `conditions`: states that count as steps.
    `ports`: the records have the ports of sources, by which links know flows.
    """

    clock: Clock
    cpus: tuple[int, ...]
    seed: int
    longest_ns: int
    flows: tuple[FlowRequest, ...]
    sample_ns: int = 0
    series_ns: int = 0
    told: tuple[int, ...] = ()
    elsewhere: tuple[int, ...] = ()
    congestion_state: dict[str, tuple[StateField, ...]] = field(default_factory=dict)
    conditions: tuple[StateCondition, ...] = ()
    ports: bool = False
