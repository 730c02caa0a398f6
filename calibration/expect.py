"""Derives from a plan the values that a measurement must find. Pure.

In: a plan. Out: per link and direction the base delay, rate, loss, duplicates and queue limit; per pair the base RTT
and the highest TCP goodput.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ewan.calibration import lans
from ewan.calibration.distribution import delay_line
from ewan.calibration.expectation import (
    BYTE_NS,
    MOST_IP_BYTES,
    Expectations,
    HostExit,
    LinkExpectation,
    PairExpectation,
    ProbeEnds,
    framed_bytes,
    losses,
    passing_bytes,
)
from ewan.calibration.lans import LanPath, LanPaths, SharedPort, card_framing
from ewan.calibration.probing import PROBE_BYTES
from ewan.labs.base.codec import replace
from ewan.labs.base.units import PPB
from ewan.labs.forwarding import Forwarding, TunnelledHop
from ewan.labs.link import DelayTable, Direction, DropTail, Psp
from ewan.labs.link.delay import nominal_ns
from ewan.labs.link.direction import Heading
from ewan.labs.link.egress import card_of, paced
from ewan.labs.link.framing import Framing
from ewan.labs.plan import End, Hop, Interface, Link, Pair, Plan

DIRECTIONS: tuple[Heading, ...] = ("forward", "backward")
FEW_PACKETS = 16
"""On a path that holds no more, TCP fills the queue and halves its window many times within 200 segments."""
TCP_HEADER_BYTES = 32  # with the timestamp option (RFC 7323), which Linux uses


def expectations(plan: Plan) -> Expectations:
    """The expected values of every link and pair of the plan; ValueError if two ends have no common address family."""
    interfaces = {(node.name, interface.name): interface for node in plan.nodes for interface in node.interfaces}
    forwarding = Forwarding(plan)
    switched = lans.of_plan(plan, forwarding)
    behind = _SwitchCosts(switched, forwarding, interfaces)
    links = [_link(link, name, interfaces, behind) for link in plan.links for name in DIRECTIONS]
    unknown = {each.link for each in plan.hardware if each.own_queue}
    links = [dataclasses.replace(each, own_queue=True) if each.link in unknown else each for each in links]
    links += [behind.port(port) for port in switched.ports()]
    first = {}
    for node in plan.nodes:
        addressed = [interface for interface in node.interfaces if interface.addresses]
        if addressed:
            first[node.name] = End(node.name, addressed[0].name)
    counted = {link.name: link for link in plan.links} | dict(switched.shared)
    pairs = []
    for pair in plan.pairs:
        both = [forwarding.crossed(*ends) for ends in ((pair.source, pair.sink), (pair.sink, pair.source))]
        ways = [_way(hops, forwarding, counted, interfaces, PROBE_BYTES) for hops in both]
        slow = sum(forwarding.ends(hop)[1].node in switched.in_user_space for hop in pair.forward.hops)
        exits = [_exit(interfaces[_key(forwarding.wired(first[name]))]) for name in (pair.source, pair.sink)]
        ends = [interfaces[_key(end)] for hops in both for hop, _ in hops for end in forwarding.ends(hop)]
        largest = [forwarding.largest(*each) for each in ((pair.source, pair.sink), (pair.sink, pair.source))]
        mtu = min(*largest, *(end.mtu for end in ends))
        full = [_way(hops, forwarding, counted, interfaces, mtu) for hops in both]
        expected = _pair(pair, first, interfaces, (ways[0], ways[1]), (full[0], full[1]), mtu)
        if any(link.name in unknown for way in ways for link in way.links):
            expected = dataclasses.replace(expected, goodput_fair=False)
        emulated = tuple(link.name for link in ways[0].links if link.name not in switched.shared)
        pairs.append(
            dataclasses.replace(expected, links=emulated, wakeups=2 * slow, source_exit=exits[0], sink_exit=exits[1])
        )
    return Expectations(tuple(links), tuple(pairs))


def _key(end: End) -> tuple[str, str]:
    return end.node, end.interface


@dataclass(frozen=True, slots=True)
class _Way:
    """One way between a pair: the links that have stages or a shared queue, their directions on this way, and the
    interfaces that send into the plain links, each with what tunnels add to a packet there. Directions count the same
    with each packet."""

    links: tuple[Link, ...]
    directions: tuple[Direction, ...]
    plain: tuple[tuple[Interface, int], ...]


def _way(
    hops: Sequence[TunnelledHop],
    forwarding: Forwarding,
    counted: Mapping[str, Link],
    interfaces: Mapping[tuple[str, str], Interface],
    packet_bytes: int,
) -> _Way:
    """`packet_bytes`: of an IP packet between the hosts, by which tunnels add a little more or less."""
    links, directions, plain = [], [], []
    for hop, tunnels in hops:
        more = forwarding.outer_bytes(tunnels, packet_bytes) - packet_bytes
        if hop.link in counted:
            link = counted[hop.link]
            way = link.forward if hop.direction == "forward" else link.backward
            links.append(link)
            directions.append(replace(way, framing=_longer(way.framing, more)) if more else way)
        else:
            plain.append((interfaces[_key(forwarding.ends(hop)[0])], more))
    return _Way(tuple(links), tuple(directions), tuple(plain))


def _longer(framing: Framing, more: int) -> Framing:
    """The same, where each packet has so many bytes more."""
    return Framing(framing.overhead_bytes + more, framing.minimum_bytes)


@dataclass(frozen=True, slots=True)
class _SwitchCosts:
    """The contribution of switches to the path of a packet."""

    switched: LanPaths
    forwarding: Forwarding
    interfaces: Mapping[tuple[str, str], Interface]

    def port(self, port: SharedPort) -> LinkExpectation:
        """A shared link, from the fastest of its hosts on to the router."""
        ways = sorted(port.ways, key=lambda way: -_rate_bps(self.wired(way.host)))
        first, direction = ways[0], self.switched.direction(port.hop)
        card, link = self.wired(first.host), self.switched.shared[port.hop.link]
        return LinkExpectation(
            link=port.hop.link,
            name=port.hop.direction,
            ends=_ends(first.host, first.router, self.interfaces),
            mtu_bytes=card.mtu,
            direction=direction,
            line=delay_line(direction.delay, not direction.reorder),
            loss=losses(link.backend, direction, PROBE_BYTES),
            duplicates=0.0,
            backend=link.backend,
            source_exit=_exit(card),
            senders=tuple(_ends(way.host, way.router, self.interfaces) for way in ways),
            card_bps=_rate_bps(card),
            after=self.exits(hop for hop in first.shared if hop != port.hop),
            wakeups=self.wakeups(first),
        )

    def wired(self, end: End) -> Interface:
        """The interface by whose card packets leave."""
        return self.interfaces[_key(self.forwarding.wired(end))]

    def exits(self, hops: Iterable[Hop]) -> tuple[HostExit, ...]:
        """The delays that the nodes add which send into shared links; none in the live clock."""
        found = (_exit(self.interfaces[_key(self.forwarding.ends(hop)[0])]) for hop in hops)
        return tuple(each for each in found if each != HostExit())

    def wakeups(self, way: LanPath) -> int:
        """The number of switches in user space on a host's path to its router."""
        return sum(self.forwarding.ends(hop)[0].node in self.switched.in_user_space for hop in way.shared)


def _link(
    link: Link,
    name: Heading,
    interfaces: Mapping[tuple[str, str], Interface],
    behind: _SwitchCosts,
) -> LinkExpectation:
    a, b = (link.a, link.b) if name == "forward" else (link.b, link.a)
    direction = link.forward if name == "forward" else link.backward
    # A switch has no address: what a link to one does is measured at the router behind it.
    way = behind.switched.ways.get(a.node) or behind.switched.ways.get(b.node)
    source, after, slowest = _exit(interfaces[_key(a)]), tuple[HostExit, ...](), 0
    if way is not None:
        slowest = min(behind.switched.direction(hop).rate_bps for hop in way.shared)
        if a.node == way.host.node:
            b, after = way.router, behind.exits(way.shared)
        else:
            first, *others = way.back
            a, after = way.router, behind.exits(others)
            source = _exit(interfaces[_key(behind.forwarding.ends(first)[0])])
    return LinkExpectation(
        link=link.name,
        name=name,
        ends=_ends(a, b, interfaces),
        mtu_bytes=min(passing_bytes(direction), *(interfaces[_key(end)].mtu for end in (a, b))),
        direction=direction,
        line=delay_line(direction.delay, not direction.reorder, direction.harq),
        loss=losses(link.backend, direction, PROBE_BYTES),
        duplicates=direction.duplicate_ppb / PPB,
        backend=link.backend,
        source_exit=source,
        card_bps=slowest,
        after=after,
        wakeups=behind.wakeups(way) if way is not None else 0,
        other=(link.backward if name == "forward" else link.forward) if direction.half_duplex else None,
    )


def _counted_bytes(pair: Pair, plain: Sequence[tuple[Interface, int]], mtu: int) -> int:
    """The bytes that a full packet counts if a plain link is the pair's bottleneck; otherwise the bytes of its IP
    packet."""
    cards = ((paced(each.egress), more) for each, more in plain)
    framings = (
        _longer(card_framing(card), more)
        for card, more in cards
        if card is not None and card.rate_bps == pair.bottleneck_bps
    )
    return mtu + min((framing.overhead_bytes for framing in framings), default=0)


def _rate_bps(interface: Interface) -> int:
    """0: it has no rate of its own."""
    card = paced(interface.egress)
    return 0 if card is None else card.rate_bps


def _exit(interface: Interface, more: int = 0) -> HostExit:
    """The delay that the psp of a sending interface adds to packets with so many more bytes; nothing if it has none."""
    card = card_of(interface.egress)
    if not isinstance(card, Psp):
        return HostExit()
    return HostExit(card.rate_bps, _longer(card_framing(card), more), card.dither_ns)


def _ends(a: End, b: End, interfaces: Mapping[tuple[str, str], Interface]) -> ProbeEnds:
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
    pair: Pair,
    first: dict[str, End],
    interfaces: dict[tuple[str, str], Interface],
    probed: tuple[_Way, _Way],
    full: tuple[_Way, _Way],
    mtu: int,
) -> PairExpectation:
    """`probed`: of probes, `full`: of packets of `mtu` bytes."""
    there, back = probed
    ends = _ends(first[pair.source], first[pair.sink], interfaces)
    links, directions = (*there.links, *back.links), (*there.directions, *back.directions)
    lines = [delay_line(direction.delay, not direction.reorder, direction.harq) for direction in directions]
    wander = sum(line.mean_ns for line in lines) - sum(float(nominal_ns(d.delay)) for d in directions)
    tables = any(isinstance(direction.delay, DelayTable) for direction in directions)
    # A pair's RTT has the nominal delays; the mean of a skewed or cut distribution is elsewhere.
    rtt = sum(line.mean_ns for line in lines) if tables else pair.rtt_ns + wander
    payload = mtu - ends.ip_header_bytes - TCP_HEADER_BYTES
    ceilings = [
        min(way.rate_bps, way.police_bps or way.rate_bps) * payload / framed_bytes(way.framing, mtu)
        for way in full[0].directions
    ]
    counted = _counted_bytes(pair, full[0].plain, mtu)
    goodput = min([*ceilings, pair.bottleneck_bps * payload / counted])
    limits = zip(there.directions, ceilings, strict=True)
    policers = [way for way, ceiling in limits if way.police_bps and ceiling <= goodput]
    # Where acknowledgements, one for two segments (RFC 9293, section 3.8.6.3), find no room on the way back some are
    # dropped: TCP may reach the ceiling all the same, or stay below it.
    acknowledgement = ends.ip_header_bytes + TCP_HEADER_BYTES
    acknowledged = all(
        goodput <= way.rate_bps * 2 * payload / framed_bytes(way.framing, acknowledgement) for way in back.directions
    )
    backends = tuple(link.backend for link in links)
    ways = zip(backends, directions, strict=True)
    lossless = all(losses(*way, mtu).probability == 0 and way[1].corrupt_ppb == 0 for way in ways)
    # A switch's port that is faster than the bottleneck never fills.
    queues = [
        way
        for link, way in zip(links, directions, strict=True)
        if link.node != link.a.node or way.rate_bps <= pair.bottleneck_bps
    ]
    unfair = any(way.police_bps or way.displace_ppb for way in directions)
    fair = (
        lossless
        and not unfair
        and acknowledged
        and all(_holds_bdp(d, mtu, pair) for d in queues)
        and all(line.constant for line in lines)
    )
    return PairExpectation(
        source=pair.source,
        sink=pair.sink,
        links=(),
        ends=ends,
        rtt_ns=rtt,
        deviation_ns=sum(line.deviation_ns**2 for line in lines) ** 0.5,
        lines=tuple(lines),
        spread_ns=max(
            (line.spread_ns for line, d in zip(lines, directions, strict=True) if not d.reorder), default=0.0
        ),
        bottleneck_bps=pair.bottleneck_bps,
        goodput_bps=goodput,
        goodput_fair=fair,
        directions=directions,
        lossless=lossless,
        backends=backends,
        exits=tuple(_exit(*each) for each in (*there.plain, *back.plain)),
        passing_bytes=min((passing_bytes(way) for way in directions), default=MOST_IP_BYTES),
        mtu_bytes=mtu,
        bucket_bytes=sum(way.police_bytes for way in policers),
        bucket_ns=max((way.police_bytes * BYTE_NS / way.police_bps for way in policers), default=0.0),
    )


def _holds_bdp(direction: Direction, mtu: int, pair: Pair) -> bool:
    size = framed_bytes(direction.framing, mtu)
    queue = direction.queue
    limits = [queue.limit_bytes, None if queue.limit_packets is None else queue.limit_packets * size]
    room = min(limit for limit in limits if limit is not None)
    # Of the pair's own path: what fills its bottleneck during a round trip.
    path = pair.bottleneck_bps * pair.rtt_ns / BYTE_NS
    if path <= FEW_PACKETS * size:
        # The window is whole packets, one of which is in service, and is halved often while it is measured.
        path += 3 * size
    return isinstance(queue.discipline, DropTail) and room >= 0.9 * path
