"""What a plan says a measurement must find. Pure.

In: a plan. Out: per link and direction the base delay, rate, loss, duplicates and queue limit; per pair the base
RTT and the highest TCP goodput; and the tolerances with their reasons.

In the virtual clock a host adds to each packet what `HostExit` says: the time that its access rate takes, which is in
`delay_ns` and `round_trip_ns`, and a dither uniform in [0, `dither_ns`), which is not: a one-way delay from host or
router lies in `delay_ns` + [0, `LinkExpectation.dither_ns`), a round trip in `round_trip_ns` + the sum of two
uniforms, [0, `PairExpectation.source_exit.dither_ns`) and [0, `.sink_exit.dither_ns`). Links that the kernel emulates
delay before they queue, and user links after; an empty queue shows no difference.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from calibration import lans
from calibration.distribution import DelayLine, LossStatistics, delay_line, loss
from calibration.lans import SwitchedLan, card_framing
from labs.forwarding import Forwarding
from labs.plan import End, Hop, Interface, Link, Pair, Plan
from labs.stages import DelayTable, Direction, DropTail, Framing, Psp
from labs.stages.delay import nominal_ns
from labs.stages.egress import paced
from labs.units import BITS_PER_BYTE, NS_PER_SECOND, PPB

DIRECTIONS: tuple[Literal["forward", "backward"], ...] = ("forward", "backward")
TCP_HEADER_BYTES = 32  # with the timestamp option (RFC 7323), which Linux uses
CARD_SHARE = 0.95
"""Of a card's rate that a probe asks for, so that it is not the card's own queue that fills."""
ENOUGH = 1.02
"""Times a link's rate: less does not show that it is the link that limits."""
BYTE_NS = BITS_PER_BYTE * NS_PER_SECOND
"""bytes × this / (bit/s) is ns; bit/s × ns / this is bytes."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far a measured value may be from the configured one. `REASONS` says why."""

    delay_ns: int = 100_000
    delay_share: float = 0.001
    delay_p99_ns: int = 2_000_000
    rtt_ns: int = 200_000
    rate_share: float = 0.001
    instant_ns: int = 50_000
    queue_share: float = 0.02
    queue_packets: float = 1.5
    confidence: float = 0.99
    goodput_above: float = 0.01
    goodput_below: float = 0.1
    switch_ns: int = 300_000
    release_p50_ns: int = 10_000
    release_p99_ns: int = 500_000
    other_bytes: int = 0
    other_bps: int = 0


def beside_routing(bounds: Tolerances, plan: Plan) -> Tolerances:
    """The same where routers talk on the links that are measured; see "routing" in `REASONS`."""
    if plan.routing == "static":
        return bounds
    return dataclasses.replace(bounds, other_bytes=ROUTING_BYTES, other_bps=ROUTING_BPS)


# Framed, one way: hellos of OSPFv2 and OSPFv3 each second, 106 and 118 bytes; of IS-IS, 134; BGP's keepalives and what
# acknowledges them, in both families every 3 s, 438.
ROUTING_BYTES, ROUTING_BPS = 450, 2_000

REASONS = {
    "delay": "p50: 100 µs, or 0.1 % of the delay if that is more, for the two network stacks around the link (4 to "
    "20 µs on a quiet machine) and CPUs that are shared; p99: 2 ms more, the time a CPU may be taken away; the "
    "largest is shown only, since one such event decides it",
    "rate": "0.1 %, and 50 µs of uncertainty at each end of the window in which packets were counted",
    "loss": "the configured probability must lie in the Wilson interval of the count; 99 % for all comparisons of "
    "a certificate together (Bonferroni), widened by the correlation of the configured model",
    "queue": "2 % of the limit, 1.5 packets (the one in service), and the bytes that leave in 50 µs (a sender's burst)",
    "rtt": "200 µs and 0.1 % for every link of the path: two stacks for each way; in the live clock a plain access "
    "link adds nothing to a lone packet, which its token bucket lets pass at once",
    "switch": "0.3 ms more delay each time a packet crosses a switch in user space, which wakes up for it",
    "goodput": "never more than 1 % above what headers leave of the rate (acknowledgements come in "
    "bunches); not more than 10 % below it by a "
    "sender whose window filled the pipe, where the queue holds the BDP and nothing is lost on purpose",
    "routing": "what routers tell each other: 450 bytes at once at most, for which a probe's packet may "
    "have to wait (p99, largest) and which fill the queue, and 2 kbit/s of the rate",
    "release": "the link's own error, due against actual, free of any network stack: p50 10 µs, p99 500 µs; "
    "on a CPU of its own it is below 1 µs and 10 µs",
}


def framed_bytes(framing: Framing, packet_bytes: int) -> int:
    """What an IP packet of this size counts on the link."""
    return max(packet_bytes + framing.overhead_bytes, framing.minimum_bytes)


def serialisation_ns(direction: Direction, packet_bytes: int) -> float:
    """How long an IP packet of this size takes at the link's rate, framing counted."""
    return framed_bytes(direction.framing, packet_bytes) * BYTE_NS / direction.rate_bps


def _own_ns(backend: str, direction: Direction, packet_bytes: int) -> float:
    """What the rate adds to a lone packet; a token bucket lets it pass at once."""
    return 0.0 if backend == "tbf" else serialisation_ns(direction, packet_bytes)


_UNCOUNTED = Framing(0, 0)


@dataclass(frozen=True, slots=True)
class HostExit:
    """What a sender's own psp adds; nothing (the default) at routers and in the live clock."""

    rate_bps: int = 0
    framing: Framing = _UNCOUNTED
    dither_ns: int = 0

    def serialisation_ns(self, packet_bytes: int) -> float:
        """How long an IP packet of this size takes at the sender's own rate; 0 where it has none."""
        return framed_bytes(self.framing, packet_bytes) * BYTE_NS / self.rate_bps if self.rate_bps else 0.0


@dataclass(frozen=True, slots=True)
class ProbeEnds:
    """Where a direction begins and ends: nodes and their addresses of one family."""

    source: str
    source_address: str
    sink: str
    sink_address: str

    @property
    def ip_header_bytes(self) -> int:
        """Of IPv6 or of IPv4 without options."""
        return 40 if ":" in self.sink_address else 20


@dataclass(frozen=True, slots=True)
class LinkExpectation:
    """One direction of one link."""

    link: str
    name: str
    ends: ProbeEnds
    mtu_bytes: int
    direction: Direction
    line: DelayLine
    loss: LossStatistics
    duplicates: float
    backend: str = "user"
    source_exit: HostExit = HostExit()
    senders: tuple[ProbeEnds, ...] = ()
    """Of a port that hosts share: all of them, from the one in `ends` on."""
    card_bps: int = 0
    """The rate of what else a sender's packets pass, its own card say; 0: nothing that has one."""
    after: HostExit = HostExit()
    """The switch's port that follows on the way to where the packets are measured."""
    wakeups: int = 0
    """Switches in user space on the way."""

    @property
    def key(self) -> str:
        """Names the link and direction in probes and results: "core forward"."""
        return f"{self.link} {self.name}"

    def together(self, above: float) -> tuple[tuple[ProbeEnds, ...], float]:
        """Who sends so many times the link's rate, and how many times it then is: cards may be too slow for it."""
        if not self.senders:
            return (self.ends,), min(
                above, CARD_SHARE * self.card_bps / self.direction.rate_bps if self.card_bps else above
            )
        one = CARD_SHARE * self.card_bps / self.direction.rate_bps
        count = min(math.ceil(above / one), len(self.senders))
        return self.senders[:count], min(above, count * one)

    @property
    def cause(self) -> str:
        """What may keep it from being what the plan says."""
        return lans.USER_SPACE if self.wakeups else ""

    @property
    def dither_ns(self) -> int:
        """A measured delay is longer than `delay_ns` by a time uniform from 0 to this."""
        return self.source_exit.dither_ns

    def delay_ns(self, packet_bytes: int) -> float:
        """Mean one-way delay through an empty queue, without dither."""
        own = _own_ns(self.backend, self.direction, packet_bytes)
        exits = self.source_exit.serialisation_ns(packet_bytes) + self.after.serialisation_ns(packet_bytes)
        return self.line.mean_ns + own + exits

    def queue_packets(self, packet_bytes: int) -> int:
        """How many packets of this size may wait."""
        queue = self.direction.queue
        size = framed_bytes(self.direction.framing, packet_bytes)
        limits = [
            queue.limit_packets,
            None if queue.limit_bytes is None else queue.limit_bytes // size,
        ]
        return min(limit for limit in limits if limit is not None)

    @property
    def active_queue(self) -> str | None:
        """The name of a discipline that drops before the limit, if there is one."""
        discipline = self.direction.queue.discipline
        return None if isinstance(discipline, DropTail) else discipline.kind

    @property
    def lossless(self) -> bool:
        """Nothing is lost or corrupted on purpose."""
        return self.loss.probability == 0 and self.direction.corrupt_ppb == 0


@dataclass(frozen=True, slots=True)
class PairExpectation:
    """What a measurement between two hosts must find. Times are ns, of a round trip."""

    source: str
    sink: str
    links: tuple[str, ...]
    ends: ProbeEnds
    rtt_ns: float
    """Propagation only, the mean of both ways."""
    deviation_ns: float
    spread_ns: float
    """Round trips this far apart (nearly) never wait for each other in a delay line."""
    bottleneck_bps: int
    goodput_bps: float
    goodput_fair: bool
    """May TCP be expected to reach the ceiling: nothing lost on purpose, the queue holds the BDP."""
    directions: tuple[Direction, ...]
    lossless: bool
    backends: tuple[str, ...]
    """Of the links that `directions` belong to."""
    exits: tuple[HostExit, ...] = ()
    """Of all that send into plain links on a round trip."""
    source_exit: HostExit = HostExit()
    sink_exit: HostExit = HostExit()
    wakeups: int = 0
    """Of a round trip, in switches in user space."""

    @property
    def key(self) -> str:
        """Names the pair in probes and results: "left1 to right1"."""
        return f"{self.source} to {self.sink}"

    @property
    def dither_ns(self) -> int:
        """A round trip is longer than `round_trip_ns` by less than this: a uniform time at each end."""
        return self.source_exit.dither_ns + self.sink_exit.dither_ns

    def round_trip_ns(self, packet_bytes: int) -> float:
        """Of a packet and an answer of the same size, without dither."""
        ways = zip(self.backends, self.directions, strict=True)
        exits = sum(exit_.serialisation_ns(packet_bytes) for exit_ in self.exits)
        return self.rtt_ns + sum(_own_ns(*way, packet_bytes) for way in ways) + exits


@dataclass(frozen=True, slots=True)
class Expectations:
    """Of each emulated link both directions and each shared port of a switch; of each pair its round trip."""

    links: tuple[LinkExpectation, ...]
    pairs: tuple[PairExpectation, ...]


def expectations(plan: Plan) -> Expectations:
    """What every link and pair of the plan must show; ValueError where two ends have no common address family."""
    interfaces = {(node.name, interface.name): interface for node in plan.nodes for interface in node.interfaces}
    networks = lans.of_plan(plan)
    links = [_link(link, name, interfaces, networks) for link in plan.links for name in DIRECTIONS]
    links += [_shared(lan, interfaces) for lan in networks.values() if lan.hosts]
    first = {}
    for node in plan.nodes:
        addressed = [interface for interface in node.interfaces if interface.addresses]
        if addressed:
            first[node.name] = End(node.name, addressed[0].name)
    forwarding = Forwarding(plan)
    counted = {link.name: link for link in (*plan.links, *(lan.port for lan in networks.values()))}
    pairs = []
    for pair in plan.pairs:
        ways = [_way(path.hops, forwarding, counted, interfaces) for path in (pair.forward, pair.backward)]
        passed = {end.node for hop in pair.forward.hops for end in forwarding.ends(hop)}
        slow = sum(networks[name].in_user_space for name in networks.keys() & passed)
        expected = _pair(pair, first, interfaces, ways[0], ways[1])
        emulated = tuple(link.name for link in ways[0].links if link.name not in networks)
        pairs.append(dataclasses.replace(expected, links=emulated, wakeups=2 * slow))
    return Expectations(tuple(links), tuple(pairs))


@dataclass(frozen=True, slots=True)
class _Way:
    """One way between a pair: the links that have stages or a shared queue, their directions on this way, and the
    interfaces that send into the plain links."""

    links: tuple[Link, ...]
    directions: tuple[Direction, ...]
    plain: tuple[Interface, ...]


def _way(
    hops: Sequence[Hop],
    forwarding: Forwarding,
    counted: Mapping[str, Link],
    interfaces: Mapping[tuple[str, str], Interface],
) -> _Way:
    known = [(counted[hop.link], hop) for hop in hops if hop.link in counted]
    directions = (link.forward if hop.direction == "forward" else link.backward for link, hop in known)
    senders = (forwarding.ends(hop)[0] for hop in hops if hop.link not in counted)
    plain = tuple(interfaces[end.node, end.interface] for end in senders)
    return _Way(tuple(link for link, _ in known), tuple(directions), plain)


def _shared(lan: SwitchedLan, interfaces: dict[tuple[str, str], Interface]) -> LinkExpectation:
    """The switch's port to the router, from the fastest of its hosts on."""
    cards = {end: interfaces[end.node, end.interface] for end in lan.hosts}
    hosts = sorted(lan.hosts, key=lambda end: -_rate_bps(cards[end]))
    return LinkExpectation(
        link=lan.port.name,
        name="forward",
        ends=_ends(hosts[0], lan.router, interfaces),
        mtu_bytes=cards[hosts[0]].mtu,
        direction=lan.port.forward,
        line=delay_line(lan.port.forward.delay, not lan.port.forward.reorder),
        loss=loss(lan.port.forward.loss),
        duplicates=0.0,
        backend=lan.port.backend,
        source_exit=_exit(cards[hosts[0]]),
        senders=tuple(_ends(host, lan.router, interfaces) for host in hosts),
        card_bps=_rate_bps(cards[hosts[0]]),
        wakeups=int(lan.in_user_space),
    )


def _link(
    link: Link,
    name: Literal["forward", "backward"],
    interfaces: dict[tuple[str, str], Interface],
    networks: Mapping[str, SwitchedLan],
) -> LinkExpectation:
    a, b = (link.a, link.b) if name == "forward" else (link.b, link.a)
    # A switch has no address: what a link to one does is measured at the router behind it.
    lan = networks.get(a.node) or networks.get(b.node)
    after = HostExit()
    if lan is not None:
        after = _exit(interfaces[lan.port.a.node, lan.port.a.interface]) if b.node in networks else after
        a, b = (lan.router if end.node in networks else end for end in (a, b))
    direction = link.forward if name == "forward" else link.backward
    model = loss(direction.loss)
    corrupt = direction.corrupt_ppb / PPB
    duplicates = direction.duplicate_ppb / PPB
    # A corrupt packet fails its checksum; of a duplicated one the copy is intact.
    damaged = (1 - model.probability) * corrupt * (1 - duplicates)
    if damaged > 0:
        model = LossStatistics(model.probability + damaged, max(model.dispersion, 1.0), model.slack_packets)
    return LinkExpectation(
        link=link.name,
        name=name,
        ends=_ends(a, b, interfaces),
        mtu_bytes=min(interfaces[end.node, end.interface].mtu for end in (a, b)),
        direction=direction,
        line=delay_line(direction.delay, not direction.reorder),
        loss=model,
        duplicates=duplicates,
        backend=link.backend,
        source_exit=_exit(interfaces[a.node, a.interface]),
        card_bps=lan.port.forward.rate_bps if lan is not None else 0,
        after=after,
        wakeups=int(lan is not None and lan.in_user_space),
    )


def _counted_bytes(pair: Pair, plain: Sequence[Interface], mtu: int) -> int:
    """What a full packet counts where a plain link is the pair's bottleneck; else, of its IP packet."""
    cards = (paced(each.egress) for each in plain)
    framings = (card_framing(card) for card in cards if card is not None and card.rate_bps == pair.bottleneck_bps)
    return mtu + min((framing.overhead_bytes for framing in framings), default=0)


def _rate_bps(interface: Interface) -> int:
    """0: it has no rate of its own."""
    card = paced(interface.egress)
    return 0 if card is None else card.rate_bps


def _exit(interface: Interface) -> HostExit:
    egress = interface.egress
    if not isinstance(egress, Psp):
        return HostExit()
    return HostExit(egress.rate_bps, card_framing(egress), egress.dither_ns)


def _ends(a: End, b: End, interfaces: dict[tuple[str, str], Interface]) -> ProbeEnds:
    """Addresses of one family, IPv4 if both ends have it."""
    for family in (4, 6):
        found = []
        for end in (a, b):
            plain = [address.split("/")[0] for address in interfaces[end.node, end.interface].addresses]
            found.append(next((text for text in plain if ipaddress.ip_address(text).version == family), None))
        if found[0] is not None and found[1] is not None:
            return ProbeEnds(a.node, found[0], b.node, found[1])
    raise ValueError(f"{a.node} and {b.node} have no addresses of one family")


def _pair(
    pair: Pair, first: dict[str, End], interfaces: dict[tuple[str, str], Interface], there: _Way, back: _Way
) -> PairExpectation:
    ends = _ends(first[pair.source], first[pair.sink], interfaces)
    links, directions = (*there.links, *back.links), (*there.directions, *back.directions)
    lines = [delay_line(direction.delay, not direction.reorder) for direction in directions]
    wander = sum(line.mean_ns for line in lines) - sum(float(nominal_ns(d.delay)) for d in directions)
    tables = any(isinstance(direction.delay, DelayTable) for direction in directions)
    # A pair's RTT has the nominal delays; the mean of a skewed or cut distribution is elsewhere.
    rtt = sum(line.mean_ns for line in lines) if tables else pair.rtt_ns + wander
    mtus = [interfaces[end.node, end.interface].mtu for link in links for end in (link.a, link.b)]
    mtu = min([*mtus, *(interfaces[end.node, end.interface].mtu for end in (first[pair.source], first[pair.sink]))])
    payload = mtu - ends.ip_header_bytes - TCP_HEADER_BYTES
    acknowledgement = ends.ip_header_bytes + TCP_HEADER_BYTES
    ceilings = [way.rate_bps * payload / framed_bytes(way.framing, mtu) for way in there.directions]
    counted = _counted_bytes(pair, there.plain, mtu)
    # One acknowledgement for two segments (RFC 9293, section 3.8.6.3) must find room on the way back.
    ceilings += [way.rate_bps * 2 * payload / framed_bytes(way.framing, acknowledgement) for way in back.directions]
    lossless = all(loss(d.loss).probability == 0 and d.corrupt_ppb == 0 for d in directions)
    # A switch's port that is faster than the bottleneck never fills.
    queues = [
        way
        for link, way in zip(links, directions, strict=True)
        if link.node != link.a.node or way.rate_bps <= pair.bottleneck_bps
    ]
    fair = lossless and all(_holds_bdp(d, mtu, pair) for d in queues) and all(line.constant for line in lines)
    return PairExpectation(
        source=pair.source,
        sink=pair.sink,
        links=(),
        ends=ends,
        rtt_ns=rtt,
        deviation_ns=sum(line.deviation_ns**2 for line in lines) ** 0.5,
        spread_ns=max(
            (line.spread_ns for line, d in zip(lines, directions, strict=True) if not d.reorder), default=0.0
        ),
        bottleneck_bps=pair.bottleneck_bps,
        goodput_bps=min([*ceilings, pair.bottleneck_bps * payload / counted]),
        goodput_fair=fair,
        directions=directions,
        lossless=lossless,
        backends=tuple(link.backend for link in links),
        exits=tuple(_exit(interface) for interface in (*there.plain, *back.plain)),
        source_exit=_exit(interfaces[first[pair.source].node, first[pair.source].interface]),
        sink_exit=_exit(interfaces[first[pair.sink].node, first[pair.sink].interface]),
    )


def _holds_bdp(direction: Direction, mtu: int, pair: Pair) -> bool:
    size = framed_bytes(direction.framing, mtu)
    queue = direction.queue
    limits = [queue.limit_bytes, None if queue.limit_packets is None else queue.limit_packets * size]
    room = min(limit for limit in limits if limit is not None)
    # Of the pair's own path: what fills its bottleneck during a round trip.
    return isinstance(queue.discipline, DropTail) and room >= 0.9 * pair.bottleneck_bps * pair.rtt_ns / BYTE_NS
