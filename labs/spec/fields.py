"""The keys of a description as pydantic models: types and meanings, no defaults applied.

Comes in: plain data, as YAML gave it. Goes out: typed values, or pydantic's errors, which `labs.spec` translates.
Where a link's setting is None here, nobody wrote it; the compiler knows the default.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from labs.spec.values import (
    BufferText,
    Count,
    DelayText,
    DitherText,
    DurationText,
    FractionText,
    GainText,
    Ip,
    Mtu,
    Name,
    PatternText,
    RateText,
    RttText,
    Seed,
    SizeText,
)
from labs.units import Duration, Fraction


class Model(BaseModel):
    """A group of keys; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)
    what: ClassVar[str] = "key"

    @classmethod
    def words(cls) -> list[str]:
        """The keys of this group as people write them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def keys_at(cls, path: Iterable[str | int]) -> tuple[list[str], str]:
        """The keys that may stand at `path`, and what they are called."""
        here: type[Model] = cls
        for part in path:
            field = next((f for n, f in here.model_fields.items() if part in (n, f.alias)), None)
            model = _model_in(field.annotation) if field is not None else None
            here = model or here
        return here.words(), here.what


def _model_in(annotation: Any) -> type[Model] | None:
    """The model inside `Model | None`, `dict[str, Model]`, `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)


class OneOf(Model):
    """Exactly one of the keys; a bare word stands for that key with everything at its default."""

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {}}
        if isinstance(value, dict):
            if len(value) != 1:
                raise ValueError(f"write exactly one of {', '.join(cls.words())}")
            return {key: {} if inner is None else inner for key, inner in value.items()}
        return value

    @property
    def kind(self) -> str:
        """The key that was written."""
        (name,) = self.model_fields_set
        return type(self).model_fields[name].alias or name

    @property
    def choice(self) -> Any:
        """The value of that key."""
        (name,) = self.model_fields_set
        return getattr(self, name)


class GilbertElliott(Model):
    """Losses in bursts, by a chain of two states (Gilbert 1960, Elliott 1963); one step a packet."""

    to_bad: FractionText = Field(description="per packet, from the good state to the bad one", examples=["0.5%"])
    to_good: FractionText = Field(description="per packet, from the bad state to the good one", examples=["20%"])
    loss_bad: FractionText = Field(Fraction.parse("100%"), description="loss in the bad state; 100 % if absent")
    loss_good: FractionText = Field(Fraction(0), description="loss in the good state; 0 % if absent")


class Markov(Model):
    """netem's `loss state` (Salsano et al. 2009): 1 received, 2 received in and 3 lost in a burst, 4 lost alone."""

    p13: FractionText = Field(description="from received to lost in a burst", examples=["1%"])
    p31: FractionText = Field(description="from lost in a burst to received", examples=["20%"])
    p32: FractionText = Field(Fraction(0), description="from lost in a burst to received in a burst")
    p23: FractionText = Field(Fraction(0), description="from received in a burst to lost in a burst")
    p14: FractionText = Field(Fraction(0), description="from received to lost alone")


class Loss(OneOf):
    """The loss model of one direction."""

    what: ClassVar[str] = "loss model"
    bernoulli: FractionText | None = Field(None, description="each packet on its own; `loss: 0.1%` says the same")
    gilbert_elliott: GilbertElliott | None = Field(None, alias="gilbert-elliott", description="bursts, two states")
    markov: Markov | None = Field(None, description="bursts, four states")
    every: Annotated[int, Count(1, 2**63 - 1)] | None = Field(
        None, description="packets n, 2n, 3n … are lost", examples=[100]
    )
    pattern: PatternText | None = Field(None, description="1 lost, 0 through, repeated; or {file: …}")

    @model_validator(mode="before")
    @classmethod
    def _fraction(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"bernoulli": value}

    @property
    def model(self) -> Fraction | GilbertElliott | Markov | int | str:
        """The model that was written: bernoulli's fraction, a chain, every's number, or a pattern."""
        model: Fraction | GilbertElliott | Markov | int | str = self.choice
        return model


class Red(Model):
    """Floyd and Jacobson 1993, gentle."""

    min: SizeText | None = Field(None, description="no drop below this average; a sixth of the limit if absent")
    max: SizeText | None = Field(None, description="`max_p` at this average; half of the limit if absent")
    max_p: FractionText = Field(Fraction.parse("10%"), description="10 % if absent")
    weight: Annotated[int, Count(0, 20)] = Field(9, description="the average moves by 2^-weight a packet; 9 if absent")
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Codel(Model):
    """RFC 8289."""

    target: DurationText | None = Field(
        None, description="a twentieth of the interval, at least a packet's time, if absent"
    )
    interval: DurationText | None = Field(
        None, description="the longest RTT, at least 100ms and ten packets' time, at most 100s, if absent"
    )
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Pie(Model):
    """RFC 8033."""

    target: DurationText | None = Field(None, description="15ms, or two packets' time on a slow link, if absent")
    update: DurationText = Field(Duration.parse("15ms"), description="at least 100us; 15ms if absent")
    alpha: GainText = Field(125, description="0.125Hz if absent")
    beta: GainText = Field(1250, description="1.25Hz if absent")
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class DropTail(Model):
    """Drops packets that find the buffer full; it has no settings."""


class Queue(OneOf):
    """The queue discipline of one direction, with its settings."""

    what: ClassVar[str] = "queue discipline"
    drop_tail: DropTail | None = Field(None, alias="drop-tail", description="drops what finds the buffer full")
    red: Red | None = Field(None, description="RED (Floyd and Jacobson 1993)")
    codel: Codel | None = Field(None, description="CoDel (RFC 8289)")
    pie: Pie | None = Field(None, description="PIE (RFC 8033)")

    @property
    def model(self) -> DropTail | Red | Codel | Pie:
        """The discipline that was written, with its own keys."""
        model: DropTail | Red | Codel | Pie = self.choice
        return model


class Direction(Model):
    """The settings of one direction of a link; None: not said here."""

    rate: RateText | None = Field(
        None, description="of what `framing` counts; wan 1Gbit/s, access 10Gbit/s (or the fastest wan) if absent"
    )
    buffer: BufferText | None = Field(
        None, description="what may wait, without the delay line; wan 1BDP of the longest RTT, access 1000pkt if absent"
    )
    queue: Queue | None = Field(None, description="queue discipline; drop-tail if absent", examples=["codel"])
    framing: Literal["wire", "ethernet", "ip"] | None = Field(
        None,
        description="what a packet's length counts beyond IP: wire 38 B (header 14, FCS 4, preamble and gap 20), "
        "ethernet 18 B, ip nothing; wire if absent",
    )
    loss: Loss | None = Field(None, description="loss model; none if absent", examples=["0.1%"])
    corrupt: FractionText | None = Field(None, description="packets with one flipped bit; none if absent")
    duplicate: FractionText | None = Field(None, description="packets sent twice; none if absent")
    delay: DelayText | None = Field(None, description="one way; from `rtt` if absent, 0 on access links")
    jitter: DurationText | None = Field(None, description="spread of the delay around `delay`; none if absent")
    distribution: Literal["uniform", "normal", "pareto"] | None = Field(
        None,
        description="uniform: within ± jitter; normal: jitter is the standard deviation; pareto: from "
        "delay - jitter on, a tail of shape 3 with that standard deviation; normal if absent",
        examples=["uniform"],
    )
    reorder: bool | None = Field(
        None,
        description="may jitter let packets overtake; false if absent: a packet then leaves no earlier than those "
        "before it, which makes the mean delay longer. Packets that come 1, 0.3, 0.1 or 0.01 of jitter apart are later "
        "by 0.04, 0.28, 0.52 or 0.83 jitter in the mean (uniform), by 0.23, 0.72, 1.21 or 2.13 (normal)",
    )


class Link(Direction):
    """The settings of a link: for both directions, and what differs in one of them."""

    mtu: Mtu | None = Field(None, description="largest IP packet in bytes; the lab's if absent", examples=[1500])
    forward: Direction | None = Field(None, description="other values for the direction from the link's first end")
    backward: Direction | None = Field(None, description="other values for the direction to the link's first end")


class OvsPort(Model):
    """Of the link between a switch and its router, in both directions."""

    rate: RateText | None = Field(
        None,
        description="of the switch's port to the router, and back; that of the fastest access link behind the switch "
        "if absent, as on a switch of equal ports",
        examples=["1Gbit/s"],
    )
    buffer: BufferText | None = Field(
        None,
        description="what may wait at the switch's port to the router, and at the router's to the switch; as `access` "
        "says, or 1000pkt, if absent",
        examples=["100pkt"],
    )


class Switch(OneOf):
    """What kind of switch the hosts of a router are behind."""

    what: ClassVar[str] = "switch"
    ovs: OvsPort | None = Field(None, description="Open vSwitch, with the port to the router as these keys say")


class AccessLink(Link):
    """The settings of the links between hosts and their routers."""

    switch: Switch | None = Field(
        None,
        description="puts the hosts of each router ROUTER behind one switch, sw-ROUTER, into one subnet; `rate` and "
        "`buffer` beside it are those of a host's card and of the switch's port to that host; none if absent",
        examples=["ovs", "{ovs: {rate: 1Gbit/s, buffer: 100pkt}}"],
    )


class GraphLink(Link):
    """One link of a graph, with its ends."""

    between: tuple[Name, Name] = Field(description="the two ends; `forward` goes from the first", examples=["[a, r1]"])
    name: Name | None = Field(None, description="the first end, a hyphen, the second end if absent")
    role: Literal["wan", "access"] | None = Field(
        None, description="access where one end is a host, else wan, if absent", examples=["wan"]
    )


Hosts = Annotated[tuple[Name, ...], Field(min_length=2)]


class Graph(Model):
    """Any hosts, routers and links."""

    hosts: Hosts = Field(description="end hosts, each with one link", examples=["[a, b]"])
    routers: tuple[Name, ...] = Field(description="what the hosts hang on", examples=["[r1]"])
    links: tuple[GraphLink, ...] = Field(description="each with the settings of a link")
    pairs: tuple[tuple[Name, Name], ...] | None = Field(
        None, description="hosts that are meant to talk; each host with the next one if absent", examples=["[[a, b]]"]
    )


def _size(default: int, description: str, least: int = 1, most: int = 20_000) -> Any:
    return Field(default, description=f"{description}; {default} if absent", examples=[default])


class Dumbbell(Model):
    """Two routers with hosts on both sides; the link between them is the bottleneck."""

    pairs: Annotated[int, Count(1, 20_000)] = _size(1, "hosts left1… send to right1… over the link `core`")
    reverse_pairs: Annotated[int, Count(0, 20_000)] = _size(0, "further pairs that send from right to left")


class ParkingLot(Model):
    """Routers in a row; one pair crosses all links between them, others one link each."""

    hops: Annotated[int, Count(1, 200)] = _size(3, "wide-area links hop1… that left1 → right1 crosses")
    cross_pairs: Annotated[int, Count(0, 100)] = _size(1, "pairs in1-1 → out1-1 that cross one hop only, for each hop")


class Star(Model):
    """Hosts around one router, each on a wide-area link of its own."""

    arms: Annotated[int, Count(2, 20_000)] = _size(3, "hosts, each on its own wide-area link arm1… to the router hub")


class Chain(Model):
    """Routers in a row, with hosts at both ends."""

    hops: Annotated[int, Count(1, 200)] = _size(3, "wide-area links hop1… one after the other")
    pairs: Annotated[int, Count(1, 20_000)] = _size(1, "hosts left1… send to right1… over all of them")


class Ring(Model):
    """Routers in a ring, a host on each."""

    routers: Annotated[int, Count(3, 400)] = _size(4, "routers in a ring, a host on each")


class Mesh(Model):
    """Routers that are all linked to each other, a host on each."""

    routers: Annotated[int, Count(2, 64)] = _size(4, "routers, each linked to each, a host on each")


class Fishbone(Model):
    """Routers in a row, each with a host on either side."""

    ribs: Annotated[int, Count(1, 200)] = _size(
        3, "routers of the spine, each with the hosts up1… and down1… on wide-area ribs"
    )


class FourDomain(Model):
    """Four sites of hosts around one core router."""

    hosts: Annotated[int, Count(1, 5000)] = _size(1, "hosts in each of the sites a, b, c, d around the router core")


class Grid(Model):
    """Routers in rows and columns, a host on each."""

    rows: Annotated[int, Count(1, 20)] = _size(3, "rows of routers, a host on each")
    columns: Annotated[int, Count(2, 20)] = _size(3, "columns of routers")


class Topology(OneOf):
    """Which topology, with its settings."""

    what: ClassVar[str] = "topology"
    dumbbell: Dumbbell | None = Field(None, description="two routers, hosts on both sides, one bottleneck")
    parking_lot: ParkingLot | None = Field(None, alias="parking-lot", description="several bottlenecks in a row")
    star: Star | None = Field(None, description="hosts around one router")
    chain: Chain | None = Field(None, description="links in a row without cross traffic")
    ring: Ring | None = Field(None, description="routers in a ring")
    mesh: Mesh | None = Field(None, description="each router linked to each")
    fishbone: Fishbone | None = Field(None, description="a spine with a rib on both sides of each router")
    four_domain: FourDomain | None = Field(None, alias="four-domain", description="four sites around a core")
    grid: Grid | None = Field(None, description="routers in rows and columns")
    graph: Graph | None = Field(None, description="any hosts, routers and links")

    @classmethod
    def parameters(cls, kind: str) -> list[str]:
        """The settings of one topology that are plain numbers."""
        return [] if kind == "graph" else cls.keys_at([kind])[0]

    @classmethod
    def all_parameters(cls) -> set[str]:
        """The settings of all topologies that are plain numbers."""
        return {word for kind in cls.words() for word in cls.parameters(kind)}


Cpus = tuple[Annotated[int, Count(0, 4095)], ...]


class CpuPlan(Model):
    """Which CPUs serve links, and which run hosts and routers."""

    spin: Cpus | None = Field(None, description="CPUs that serve links and nothing else; the last one if absent")
    hosts: Cpus | None = Field(None, description="CPUs for end hosts and routers; the others if absent")


class ContainerPlan(Model):
    """Settings that only a lab of containers has."""

    management: bool = Field(
        False,
        description="the engine's network at each node's eth0, and the lab's own interfaces from eth1 on; false if "
        "absent, as whatever else crosses a node costs accuracy",
    )
    dashboards: bool = Field(
        False, description="Prometheus and Grafana beside the nodes; needs `management`, which it turns on"
    )
    ovs_bridge: bool = Field(
        False,
        alias="ovs-bridge",
        description="switches are bridges of the host's Open vSwitch (containerlab's kind ovs-bridge), made by hand",
    )


class Description(Model):
    """A whole lab description, as it was written: no defaults applied."""

    topology: Topology = Field(description="what is linked to what", examples=["{dumbbell: {pairs: 2}}"])
    name: Name | None = Field(None, description="names everything the lab owns; the file's or topology's if absent")
    rtt: RttText | None = Field(
        None,
        description="base RTT (propagation, both ways) of the longest host pair, shared out over the wide-area links "
        "without a delay of their own; in a dumbbell also one for each pair, by access delay; 100ms if absent "
        "and no link has a delay",
    )
    wan: Link = Field(Link(), description="settings of every wide-area link", examples=["{rate: 1Gbit/s}"])
    access: AccessLink = Field(AccessLink(), description="settings of every access link; `forward` goes from the host")
    links: dict[str, Link] = Field({}, description="settings of single links by name", examples=["{core: {loss: 1%}}"])
    mtu: Mtu = Field(1500, description="largest IP packet in bytes; 1500 if absent")
    ip: Ip = Field("dual", description="IPv4, IPv6 or both; dual if absent")
    seed: Seed = Field(1, description="of everything random; 1 if absent")
    emulator: Literal["auto", "user", "kernel", "tbf"] = Field(
        "auto",
        description="what emulates links: user, our own process; kernel, netem with psp and the queue below it; tbf, "
        "a token bucket in place of psp. auto takes user in the live clock, and in the virtual clock kernel for each "
        "link that it can express",
    )
    dither: DitherText = Field(
        "auto",
        description="virtual clock: each packet of a host waits for a seeded time, uniform from 0 to this, so that "
        "exact timing does not synchronise flows; auto is the time of the largest packet at the bottleneck of the "
        "host's pairs; 0 for none",
    )
    routing: Literal["static", "ospf", "bgp", "isis"] = Field(
        "static",
        description="static: shortest delay, fixed; ospf, isis: FRRouting, with costs from the delays; bgp: FRRouting, "
        "each router an autonomous system of its own",
    )
    containers: ContainerPlan = Field(ContainerPlan(), description="what only a lab of containers has")
    cpus: CpuPlan = Field(CpuPlan(), description="placement on CPUs, in the live clock; by the compiler if absent")
