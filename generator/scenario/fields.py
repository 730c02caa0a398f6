"""The keys of a scenario as pydantic models: types and meanings.

Comes in: plain data, as YAML gave it, with the parameters put in. Goes out: typed values, or pydantic's errors, which
`ewan.labs.spec.translate` puts into words. Nodes and links are names here; `ewan.generator.scenario.schedule` looks
them up.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ewan.generator.scenario.kinds import (
    KINDS,
    Arrivals,
    Bulk,
    Kind,
    Media,
    Messages,
    Quic,
    Requests,
    Udp,
    at_once,
)
from ewan.generator.scenario.laws import DAY_NS, TimeLaw, TimeText, VolumeText
from ewan.generator.scenario.published import FigureText, Metric, PublishedText, Stop
from ewan.labs.base.model import Model
from ewan.labs.base.units import Duration, Size, UnitError, parse_published
from ewan.labs.base.values import Count, Name
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.record.quantities import Role
from ewan.labs.record.scenario_requests import Comparison, PublishedValue, Reference
from ewan.labs.record.traffic import Relation, StateComparison
from ewan.labs.spec.fields import Pacing
from ewan.labs.spec.values import KernelText

_KINDS = frozenset(KINDS)
MOST_FLOWS = 16_384  # of a run; emulator/traffic/src/flows/request.rs
MOST_EXCHANGES = 10_000_000  # of a run: each is a row of its tables
MOST_PORT = 65_535
LEAST_UDP, MOST_UDP = 24, 65_507  # the generator's header; what IPv4 carries


def _word(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9_-]{0,14}", value):
        return value
    raise ValueError('write the kernel\'s name of a congestion control, like "cubic"')


def parameter(value: object) -> str | int:
    """One word or number; true and false as words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return value
    raise ValueError('is one value: write a word or a number with its unit, like "10ms"')


def _nodes(value: object) -> tuple[str, ...]:
    texts = value if isinstance(value, (list, tuple)) else [value]
    if texts and all(isinstance(text, (str, int)) and not isinstance(text, bool) and text != "" for text in texts):
        return tuple(str(text) for text in texts)
    raise ValueError('write names of nodes or a role, like "left[1-10]"')


def _steps(value: object) -> tuple[str, ...]:
    written = value if isinstance(value, (list, tuple)) else [value]
    names = [name for name in written if isinstance(name, str) and name]
    if names and len(names) == len(written):
        return () if names == ["none"] else tuple(dict.fromkeys(names))
    raise ValueError('write the name of a step, several as "[first, second]", or "none"')


def _interval(value: object) -> Duration:
    """0, for none, needs no unit."""
    if not isinstance(value, bool) and str(value) == "0":
        return Duration(0)
    result = Duration.parse(value, DAY_NS)
    if 0 < result.ns < Duration.parse("100us").ns:
        raise UnitError('is too short: write at least "100us", or 0 for none')
    return result


_RELATIONS: dict[str, Relation] = {"": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARED = re.compile(r"(!=|[<>]=?|)\s*(-?[0-9]+(?:\.[0-9]+)?|[A-Za-z_][\w.]*)", re.ASCII)


def _state(value: object) -> dict[str, StateComparison]:
    if not isinstance(value, dict):
        raise ValueError('write variables of the state, like "{mode: DRAIN}"')
    return {str(name): _comparison(str(name), written) for name, written in value.items()}


def _comparison(name: str, value: object) -> StateComparison:
    text = "" if isinstance(value, bool) or not isinstance(value, (str, int, float)) else str(value)
    if (found := _COMPARED.fullmatch(text.strip())) is None:
        raise ValueError(f'{name}: write a word, a number, or a comparison, like DRAIN, 2 or ">= 2"')
    result = StateComparison(variable=name, is_=_RELATIONS[found[1]], value=found[2])
    if result.is_word and result.is_ not in ("=", "!="):
        raise ValueError(f"{name}: a word is neither more nor less than another: write {result.value} or "
                         f'"!= {result.value}"')  # fmt: skip
    return result


def _look(value: object) -> Duration:
    result = Duration.parse(value, DAY_NS)
    if result < Duration.parse("100us"):
        raise UnitError('is too short: write at least "100us"')
    return result


def _ports(value: object) -> tuple[int, ...]:
    written = value if isinstance(value, (list, tuple)) else [value]
    texts = [str(each) for each in written if not isinstance(each, bool)]
    if len(texts) != len(written) or not all(re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) for text in texts):
        raise ValueError('write a port, or a list of them, like "4433" or "[4433, 4434]"')
    ports = sorted({int(text) for text in texts})
    if not ports or ports[0] < 1 or ports[-1] > MOST_PORT:
        raise ValueError(f"ports are 1 to {MOST_PORT}")
    return tuple(ports)


def _thinking(value: object) -> Duration:
    """0, for none, needs no unit."""
    return Duration(0) if not isinstance(value, bool) and str(value) == "0" else Duration.parse(value, DAY_NS)


def _title(title: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": title, "examples": list(examples)})


Text = Annotated[str, Field(min_length=1), _title("text")]
LabText = Annotated[Any, _title("keys, a path or a name")]
SweepText = Annotated[Any, _title("keys with lists, or a list of such")]
SeedsText = Annotated[Any, _title("whole number, or a list of them")]
Parameter = Annotated[str | int, PlainValidator(parameter), _title("value", "4", "10ms")]
CongestionText = Annotated[str, PlainValidator(_word), _title("congestion control", "cubic")]
NodesText = Annotated[tuple[str, ...], PlainValidator(_nodes), _title("nodes", "left[1-10]", "[left1, right2]")]
PortsText = Annotated[tuple[int, ...], PlainValidator(_ports), _title("port, or a list of them", "4433")]
AfterText = Annotated[tuple[str, ...], PlainValidator(_steps), _title("steps", "first", "[first, second]")]
StateText = Annotated[
    dict[str, StateComparison],
    PlainValidator(_state),
    WithJsonSchema(
        {
            "type": "object",
            "title": "variables",
            "additionalProperties": {"type": ["string", "number"]},
            "examples": ["{mode: DRAIN}", '{losses: ">= 2"}'],
        }
    ),
]
ThinkingText = Annotated[Duration, PlainValidator(_thinking), _title("`0` or a duration", "200us")]
IntervalText = Annotated[Duration, PlainValidator(_interval), _title("`0` or a duration", "100ms")]
Seeds = Annotated[int, Count(1, 10_000)]

GENERATOR = Literal["ewan", "iperf3", "ditg", "udt", "openmpi"]
NO_TCP = ("udt",)
"""Generators whose bulk is not TCP: they have a congestion control of their own."""


MOST_PATHS = 9
"""emulator/system/src/mptcp.rs."""
DEFAULT_SCHEDULER = "default"


class MultipathKeys(Model):
    """The paths of a flow between hosts with several links."""

    what: ClassVar[str] = "key of multipath"
    paths: Annotated[int, Count(1, MOST_PATHS)] | None = Field(
        None,
        description="in all; 1: plain TCP; one for each address that either end has, and at most so many, if absent",
        examples=[2],
    )
    scheduler: CongestionText = Field(
        DEFAULT_SCHEDULER,
        description="the kernel's scheduler, which gives each segment to a path; `default` if absent, which every "
        "kernel has",
        examples=[DEFAULT_SCHEDULER],
    )


class Socket(Model):
    """Settings of a flow's sockets; a step's own settings go before those of `defaults`."""

    congestion: CongestionText | None = Field(
        None, description="congestion control of all TCP senders; cubic if absent", examples=["bic"]
    )
    generator: GENERATOR | None = Field(
        None,
        description="who sends: our own (ewan, if absent), iperf3, D-ITG (`ditg`), UDT or Open MPI; see above",
    )
    streams: Annotated[int, Count(1, 1000)] | None = Field(
        None, description="parallel connections of each transfer, which share its volume; 1 if absent", examples=[4]
    )
    send_buffer: VolumeText | None = Field(
        None, description="of the sender's socket; what the kernel finds right if absent", examples=["4MB"]
    )
    receive_buffer: VolumeText | None = Field(
        None, description="of the receiver's socket; what the kernel finds right if absent", examples=["4MB"]
    )
    window: VolumeText | None = Field(
        None, description="the most that the receiver lets be in flight (with iperf3 its -w)", examples=["64KiB"]
    )
    mss: Annotated[int, Count(88, 32_767)] | None = Field(
        None, description="largest TCP segment in bytes; from the MTU if absent", examples=[1448]
    )
    dscp: Annotated[int, Count(0, 63)] | None = Field(None, description="DSCP; 0 if absent", examples=[46])
    ecn: bool | None = Field(None, description="explicit congestion notification; false if absent")
    nodelay: bool | None = Field(None, description="without Nagle's algorithm; false if absent")
    multipath: MultipathKeys | None = Field(
        None,
        description="of `bulk` between hosts of which one has several links: a connection over several paths (MPTCP, "
        "RFC 8684); plain TCP if absent",
        examples=["{paths: 2}"],
    )
    pacing: Pacing | None = Field(
        None,
        description="the rate of what each member's `from` sends, all its connections together, at its host's exit; as "
        "the lab says of its host if absent",
        examples=["{psp: 400Mbit/s}", "none"],
    )


class When(Model):
    """The state of a congestion control that a step or an event waits for."""

    what: ClassVar[str] = "key of a condition"
    flow: Text = Field(description="a step of TCP; each sender of its flows is looked at", examples=["bulk"])
    state: StateText = Field(
        description="variables of the control's state, as in the columns `cc.NAME` of the series, and what they are to "
        "be, all of them at one sender at once: a word, a number, or a comparison (`!=`, `<`, `<=`, `>`, `>=`)",
    )
    every: Annotated[Duration, PlainValidator(_look), _title("duration", "10ms")] = Field(
        Duration.parse("1ms"), description="from one look to the next, at least 100us; 1ms if absent"
    )

    @property
    def said(self) -> str:
        """`mode DRAIN of bulk`."""
        return f"{' and '.join(each.words for each in self.state.values())} of {self.flow}"


class Repeat(Model):
    """The number of starts of each member of a step, and the time between them."""

    times: Annotated[int, Count(1, 100_000)] = Field(description="how often in all", examples=[3])
    every: TimeLaw = Field(description="from one start to the next, a duration or a law", examples=["10s"])


class CommandFlows(Model):
    """The packets of a command that are a flow of the run: emulated links count them."""

    what: ClassVar[str] = "key of the flows of a command"
    port: PortsText = Field(
        (),
        description="the TCP or UDP port at either end, or a list of them; all that the two nodes exchange if absent",
        examples=[4433, "[4433, 4434]"],
    )
    sockets: Literal["own"] | None = Field(
        None,
        description="`own`: what goes over the sockets of the command, and of the processes that it starts, whatever "
        "their ports; in place of `port`",
    )
    from_: NodesText | None = Field(
        None, alias="from", description="who sends the payload; the node of the command if absent", examples=["right1"]
    )
    to: NodesText | None = Field(
        None, description="who gets the payload; the node of the command if absent; this, `from` or both"
    )


class ScenarioStep(Socket):
    """One key of `steps`: who sends what to whom, when and how."""

    what: ClassVar[str] = "key of a step"
    name: Name = Field(description="in tables and in the names of its flows", examples=["forward"])
    role: Role | None = Field(None, description="what metrics count it as; load if absent")
    at: TimeLaw = Field(
        default_factory=at_once,
        description="when its first member starts, from T0; a law draws it for each member; 0s if absent",
        examples=["5s"],
    )
    after: AfterText = Field(
        (), description="starts when these steps have ended, and `at` counts from then; `none`, as if absent: from T0"
    )
    when: When | None = Field(
        None,
        description="starts when the congestion control of a step's flow is in a state, and `at` counts from then",
        examples=["{flow: bulk, state: {mode: DRAIN}}"],
    )
    offset: TimeLaw = Field(
        default_factory=at_once,
        description="from one member's start to the next's, a duration or a law; 0s if absent",
        examples=["1s", "{exponential: {mean: 1s}}"],
    )
    repeat: Repeat | None = Field(None, description="each member again", examples=["{times: 3, every: 10s}"])
    from_: NodesText | None = Field(None, alias="from", description="who sends")
    to: NodesText | None = Field(
        None, description="to whom: as many as send, or one for all; one sender may have many", examples=["right[1-10]"]
    )
    ranks: NodesText | None = Field(None, description="who exchanges `messages`", examples=["left[1-4],right[1-4]"])
    on: NodesText | None = Field(None, description="where a command is `run`", examples=["left1"])
    for_: TimeText | None = Field(
        None, alias="for", description="how long from a member's start, with `run` not", examples=["60s"]
    )
    bulk: Bulk | None = Field(None, description="one transfer a member", examples=["30Gbit", "{volume: 500MB}"])
    bidirectional: Bulk | None = Field(
        None, description="both ends send the volume on one connection", examples=["{volume: 500MB}"]
    )
    arrivals: Arrivals | None = Field(None, description="connections of random size that come at random times")
    requests: Requests | None = Field(None, description="a session: request, answer, think, and again")
    udp: Udp | None = Field(None, description="packets at exact times, constant or random")
    quic: Quic | None = Field(
        None, description="one transfer a member over QUIC", examples=["20MB", "{library: quinn, congestion: bbr}"]
    )
    messages: Messages | None = Field(None, description="message passing between `ranks`")
    media: Media | None = Field(None, description="interactive video whose rate follows the network")
    run: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="a command, whose output is kept", examples=["ping -c 10 right1"]
    )
    flows: CommandFlows | None = Field(
        None,
        description="what the command sends or gets is a flow of the run, which emulated links count",
        examples=["{port: 4433, from: right1}"],
    )
    service: bool = Field(False, description="a command that is ended when all else has ended; false if absent")
    ready: Annotated[int, Count(1, MOST_PORT)] | None = Field(
        None,
        description="of a service: the port at which it listens when it is ready; steps with `after` start then",
        examples=[4433],
    )

    @model_validator(mode="before")
    @classmethod
    def _empty(cls, value: Any) -> Any:
        """`bulk:` with nothing below it is a transfer with everything at its default."""
        if isinstance(value, dict):
            return {key: {} if inner is None and key in KINDS else inner for key, inner in value.items()}
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> ScenarioStep:
        if len(self.model_fields_set & set(KINDS)) != 1:
            raise ValueError(f"write exactly one of {', '.join(KINDS)}")
        return self

    @property
    def kind(self) -> Kind:
        """The kind of the step: the member of KINDS that it has as a key."""
        (kind,) = self.model_fields_set & _KINDS
        return cast(Kind, kind)

    @property
    def work(self) -> Any:
        """The value of that key."""
        return getattr(self, self.kind)


OnlyTrue = Annotated[bool, WithJsonSchema({"const": True, "examples": ["true"]})]
"""`false` has no meaning: the compiler refuses it, and says what to write."""


class EventKeys(DirectionKeys):
    """A change of a link while the run goes on; the words are those of a link's settings.

    As it is written; `ewan.labs.runtime.program.EventKeys` is what it becomes for each direction, in integers.
    """

    what: ClassVar[str] = "key of an event"
    at: TimeText = Field(
        Duration(0), description="from T0; after the moment of `when`, and 0s there if absent", examples=["50s"]
    )
    when: When | None = Field(
        None,
        description="when the congestion control of a flow is in a state, for the first time",
        examples=["{flow: bulk, state: {mode: DRAIN}}"],
    )
    for_: TimeText | None = Field(
        None,
        alias="for",
        description="then the link is again as it was just before; the change stays if absent",
        examples=["50ms"],
    )
    link: Text = Field(description="an emulated link", examples=["core"])
    direction: Literal["forward", "backward", "both"] = Field("both", description="both if absent")
    down: OnlyTrue | None = Field(None, description="the link goes down, and has no carrier at either end")
    up: OnlyTrue | None = Field(None, description="it comes back")


def _kept(value: object) -> Size:
    return _within(value, "64B", "256KiB")


def _file(value: object) -> Size:
    return _within(value, "64kB", "1GB")


def _within(value: object, least: str, most: str) -> Size:
    result = Size.parse(value)
    if not Size.parse(least) <= result <= Size.parse(most):
        raise UnitError(f"is {result}: write {least} to {most}")
    return result


class CaptureKeys(Model):
    """Packets at the interfaces of nodes, kept in a pcapng file."""

    what: ClassVar[str] = "key of a capture"
    node: NodesText | None = Field(
        None, description="where packets are captured; this or `point`", examples=["left1", "[left1, right1]"]
    )
    link: Text | None = Field(
        None, description="only at their interface to this link; at all of their interfaces if absent"
    )
    point: Text | None = Field(
        None,
        description="as `ewan lab capture` takes it: an interface of a node, a link at both sides, at one, or one way",
        examples=["r1:eth0", "core", "core:r2", "core:forward"],
    )
    at: TimeText | None = Field(None, description="from T0; earlier packets are left out", examples=["20s"])
    for_: TimeText | None = Field(
        None, alias="for", description="for so long; to the end of the run if absent", examples=["5s"]
    )
    snap: Annotated[Size, PlainValidator(_kept), _title("size", "96B")] = Field(
        Size(96), description="how much of each packet is kept, from its Ethernet header on; 96B if absent"
    )
    most: Annotated[Size, PlainValidator(_file), _title("size", "64MB")] = Field(
        Size(64_000_000),
        description="of each node's file; later packets are counted and left out; 64MB if absent",
    )


class Normalise(Model):
    """The reference that metrics are divided by."""

    by: Text = Field(description="a parameter of the sweep", examples=["congestion"])
    to: Parameter = Field(description="its value that all others are divided by", examples=["reno"])

    @property
    def recorded(self) -> Reference:
        """The reference, as an experiment's record has it."""
        return Reference(self.by, self.to)


class Compare(Model):
    """A comparison of the values of a parameter, run by run of the same seed."""

    what: ClassVar[str] = "key of a comparison"
    by: Text = Field(description="a parameter of the sweep", examples=["congestion"])
    to: Parameter = Field(description="its value that all others are held against", examples=["reno"])
    metrics: tuple[Metric, ...] = Field(
        (), description="what is compared; the scenario's `metrics`, or those of the table, if absent"
    )
    harm: bool = Field(
        False,
        description="the share of the goodput of `to` by itself that is lost at the other values (Ware et al., HotNets "
        "2019); false if absent",
    )

    @property
    def recorded(self) -> Comparison:
        """The comparison, as an experiment's record has it."""
        return Comparison(self.by, self.to, self.metrics, self.harm)


class OwnControl(Model):
    """A congestion control of the user's own: a module of the virtual kernel, or live of this machine's, or, of the
    name `external`, a program beside the virtual kernel."""

    what: ClassVar[str] = "key of a congestion control"
    source: Text | None = Field(
        None,
        description="its C source, in the style of Linux's net/ipv4/tcp_*.c, relative to the scenario's folder",
        examples=["tcp_mine.c"],
    )
    parameters: dict[str, Parameter] = Field(
        {}, description="the module's parameters, for all flows of a run", examples=["{alpha: 2}"]
    )
    program: Text | None = Field(
        None,
        description="of `external`: the program that sets the windows, and its arguments; paths are relative to the "
        "scenario's folder, and the archive has the files that they name there",
        examples=["./mine.py 2"],
    )
    files: tuple[Text, ...] = Field(
        (),
        description="files and folders beside the scenario that this program reads",
        examples=["[policy.py, weights/]"],
    )
    thinks: ThinkingText = Field(
        Duration(0),
        description="simulated time until an answer of this program takes effect; 0 if absent",
        examples=["200us"],
    )


class PublishedKeys(Model):
    """A published value that is shown beside the measured one."""

    source: Text = Field(description="where the value was published", examples=['"NXE, table 4"'])
    when: dict[str, Parameter] = Field({}, description="parameters that it is for; all if absent")
    metric: Metric = Field(description="what it is of")
    value: PublishedText = Field(description="the published value")
    than: dict[str, Parameter] | None = Field(
        None,
        description="the value is how much more (or less) this is than at these parameters, as a share",
        examples=["{reverse: 0}"],
    )
    normalised: bool = Field(False, description="a ratio to the reference of `normalise`; false if absent")
    note: str | None = Field(None, description="shown with it")

    @property
    def recorded(self) -> PublishedValue:
        """The published value, as an experiment's record has it; `value` in the base unit."""
        value, unit = parse_published(self.value)
        than, note = None if self.than is None else dict(self.than), self.note or ""
        of = self.source, dict(self.when), self.metric
        return PublishedValue(*of, value, unit, self.value, than, self.normalised, note)


class Scale(Model):
    """Keys that replace the scenario's own."""

    what: ClassVar[str] = "key of a scale"
    about: str | None = Field(None, description="what differs", examples=["a tenth of the volume"])
    parameters: dict[str, Parameter] = Field({}, description="these instead", examples=["{volume: 1Gbit}"])
    sweep: SweepText = Field(None, description="this instead")
    seeds: SeedsText = Field(None, description="these instead", examples=[1])
    stop: Stop | None = Field(None, description="this instead")


class ScenarioDescription(Model):
    """All keys of a scenario's file."""

    name: Name | None = Field(None, description="the file's if absent", examples=["parallel-streams"])
    title: str | None = Field(None, description="one line, for people; the name if absent")
    about: str | None = Field(None, description="what it is for, in the report")
    source: str | None = Field(None, description="the paper that it is from")
    expected: str | None = Field(None, description="what comes out, in words and numbers, in the virtual clock")
    lab: LabText = Field(
        description="a lab description, or the path of one, or its name beside the scenario or in labs/library",
        examples=["dumbbell"],
    )
    parameters: dict[str, Parameter] = Field(
        {}, description="names and values, used as `${name}` below; also --set name=value", examples=["{streams: 1}"]
    )
    sweep: SweepText = Field(
        None,
        description="values of parameters, each with each; a list of such groups runs one group after the other",
        examples=["{streams: [1, 2, 5, 10]}"],
    )
    seeds: SeedsText = Field(None, description="how many, or a list; the lab's seed if absent", examples=[3, "[7, 8]"])
    scales: dict[str, Scale] = Field({}, description="other sizes of the same: --size NAME", examples=["{quick: …}"])
    roles: dict[str, NodesText] = Field(
        {}, description="names of groups of nodes", examples=['{senders: "left[1-11]"}']
    )
    needs: tuple[str, ...] = Field(
        (),
        description="files and folders that commands read beside the scenario's folder, relative to it",
        examples=["[../traces, /srv/videos]"],
    )
    cc: dict[CongestionText, OwnControl] = Field(
        {},
        description="congestion controls of your own, by the names that they register; steps name them as any other. "
        "What `ewan cc add` added needs no key here",
        examples=["{mine: {source: tcp_mine.c}}"],
    )
    defaults: Socket = Field(Socket(), description="for steps that do not say it themselves")
    sample: IntervalText = Field(
        Duration.parse("100ms"), description="from one look at a sender's TCP to the next; 100ms if absent"
    )
    series: IntervalText = Field(
        Duration.parse("100ms"), description="bins of what receivers get, as it arrives and in order; 100ms if absent"
    )
    watch: IntervalText = Field(
        Duration.parse("100ms"), description="from one look at the links' counters to the next; 100ms if absent"
    )
    count_flows: bool = Field(
        False,
        description="emulated links count packets, losses, marks and waiting times of each flow; as if true where a "
        "command has `flows`",
    )
    kernel: KernelText | None = Field(
        None,
        description="virtual clock: the kernel of the lab, by the name that `ewan kernel add` gave it; that of the lab "
        "if absent. A sweep may go over kernels",
        examples=["bbr3"],
    )
    runtime: Literal["virtual"] | None = Field(
        None, description="the clock of its runs where `--runtime` names none; a description of a lab runs in both"
    )
    longest: TimeText | None = Field(
        None, description="from T0; what still runs then is ended; found from the steps if absent", examples=["700s"]
    )
    steps: tuple[ScenarioStep, ...] = Field(description="what is sent and run")
    events: tuple[EventKeys, ...] = Field((), description="changes of links")
    capture: tuple[CaptureKeys, ...] = Field(
        (),
        description="packets that are kept as pcapng, and as a table (docs/how-to/experiments/experiments.md)",
        examples=["[{node: left1}, {node: right1}]"],
    )
    stop: Stop | None = Field(None, description="more seeds until a metric is known well enough")
    normalise: Normalise | None = Field(None, description="metrics as multiples of those of one parameter's value")
    compare: tuple[Compare, ...] = Field(
        (),
        description="differences by seed with intervals, tests (Holm's correction over all of them) and effect sizes",
        examples=["[{by: congestion, to: cubic, metrics: [steady goodput]}]"],
    )
    beside: tuple[PublishedKeys, ...] = Field((), description="published values, to be shown beside ours")
    metrics: tuple[Metric, ...] = Field((), description="what the table shows first; what fits the steps if absent")
    figures: tuple[FigureText, ...] = Field((), description="of the report, beside those that every report has")

    @model_validator(mode="after")
    def _once(self) -> ScenarioDescription:
        for name, times in Counter(step.name for step in self.steps).items():
            if times > 1:
                raise ValueError(f"two steps are called {name}: write another name for one")
        if not self.steps:
            raise ValueError("has no steps: write at least one")
        return self
