"""A lab reduced to the networks of other programs: hosts, routers, and links that queue, send, delay and lose.

In: a plan. Out: a `SimulatedNetwork`; DescriptionError that names the first setting of a link that has no place in it.
No setting of a plan is left out silently: any but a rate, a constant delay, a drop-tail queue or independent loss is
refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from ewan.labs.link import BernoulliLoss, ConstantDelay, Direction, DropTail, NoLoss, Psp, Tbf
from ewan.labs.link import delay as delays
from ewan.labs.link import loss as losses
from ewan.labs.link.direction import impairment_words
from ewan.labs.plan import End, Interface, Link, Plan, Wire, tunnels_of
from ewan.labs.spec import DescriptionError

ETHERNET_HEADER = 14  # a card's queueing discipline counts it beside the IP packet


@dataclass(frozen=True, slots=True)
class SimulatedDirection:
    """One direction of a link. The limit of waiting packets is in packets or in bytes, without the one in service.

    `overhead_bytes`: the bytes of a packet's length beyond IP."""

    rate_bps: int
    delay_ns: int
    limit_packets: int | None
    limit_bytes: int | None
    loss_ppb: int
    overhead_bytes: int

    def queue_bytes(self, mtu: int) -> int:
        """The bytes that may wait; packets count as the largest."""
        if self.limit_packets is not None:
            return self.limit_packets * (mtu + self.overhead_bytes)
        return self.limit_bytes or 0


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """A link between two nodes; `forward` goes from a to b. `emulated`: its queue is apart from the sending node, whose
    own card it is else."""

    name: str
    a: str
    b: str
    role: Literal["wan", "access"]
    forward: SimulatedDirection
    backward: SimulatedDirection
    emulated: bool

    @property
    def ways(self) -> tuple[tuple[str, str, SimulatedDirection], ...]:
        """Both directions, with the sending and the receiving node."""
        return (self.a, self.b, self.forward), (self.b, self.a, self.backward)


@dataclass(frozen=True, slots=True)
class SimulatedNetwork:
    """A lab's hosts, routers and links. `buffer_bytes`: the most that a host's TCP socket may hold."""

    lab: str
    hosts: tuple[str, ...]
    routers: tuple[str, ...]
    links: tuple[NetworkLink, ...]
    mtu: int
    buffer_bytes: int

    @property
    def nodes(self) -> tuple[str, ...]:
        """Hosts, then routers."""
        return (*self.hosts, *self.routers)

    @property
    def is_tree(self) -> bool:
        """Return whether a single path leads from each node to each other one."""
        return len(self.links) == len(self.nodes) - 1


def network(plan: Plan) -> SimulatedNetwork:
    """The network of a plan, in these terms; DescriptionError where they do not suffice."""
    by_kind: dict[str, list[str]] = {"host": [], "router": [], "switch": [], "emulator": []}
    for node in plan.nodes:
        by_kind[node.kind].append(node.name)
    if by_kind["switch"]:
        message = f'{by_kind["switch"][0]} of lab {plan.lab}: a switch cannot be expressed: leave "switch:" out'
        raise DescriptionError(message)
    for tunnel in tunnels_of(plan):
        message = f'tunnel {tunnel} of lab {plan.lab}: a tunnel cannot be expressed: leave "tunnels:" out'
        raise DescriptionError(message)
    for node in plan.nodes:
        if node.machine is not None:
            raise DescriptionError(
                f'host {node.name} of lab {plan.lab}: a machine cannot be expressed: leave "machine:" out'
            )
        if node.stack is not None:
            raise DescriptionError(
                f'host {node.name} of lab {plan.lab}: a stack cannot be expressed: leave "stack:" out'
            )
        if any(route.source for route in node.routes):
            raise DescriptionError(
                f"host {node.name} of lab {plan.lab}: several links cannot be expressed: leave one of them"
            )
    for pair in plan.pairs:
        if [hop.link for hop in pair.forward.hops] != [hop.link for hop in reversed(pair.backward.hops)]:
            message = f"{pair.source} to {pair.sink} of lab {plan.lab}: a way back by other links cannot be expressed"
            raise DescriptionError(f'{message}: leave "routes:" out')
    interfaces = {End(node.name, port.name): port for node in plan.nodes for port in node.interfaces}
    (mtu, _), *others = Counter(port.mtu for port in interfaces.values()).most_common()
    if others:
        message = f'lab {plan.lab}: has interfaces of {mtu} and of {others[0][0]} bytes: write one "mtu:" for all'
        raise DescriptionError(message)
    emulated = {link.name for link in plan.links}
    links = [_emulated(link) for link in plan.links]
    links += [_plain(wire, interfaces) for wire in plan.wires if wire.link not in emulated]
    return SimulatedNetwork(
        lab=plan.lab,
        hosts=tuple(by_kind["host"]),
        routers=tuple(by_kind["router"]),
        links=tuple(links),
        mtu=mtu,
        buffer_bytes=max((_buffer(node.sysctls) for node in plan.nodes if node.kind == "host"), default=0),
    )


def _buffer(sysctls: dict[str, str]) -> int:
    """The third number of tcp_wmem: the size to which a socket grows."""
    return int(sysctls["net/ipv4/tcp_wmem"].split()[2])


def _emulated(link: Link) -> NetworkLink:
    forward = _way(link.forward, f"{link.name} ({link.a.node} to {link.b.node})")
    backward = _way(link.backward, f"{link.name} ({link.b.node} to {link.a.node})")
    return NetworkLink(link.name, link.a.node, link.b.node, link.role, forward, backward, True)


def _way(direction: Direction, where: str) -> SimulatedDirection:
    """One direction; settings beyond rate, delay, queue and loss are refused."""
    if words := impairment_words(direction):
        raise DescriptionError(f"{where}: {words[0]} cannot be expressed: leave it out")
    if not isinstance(direction.queue.discipline, DropTail):
        name = direction.queue.discipline.words
        raise DescriptionError(f'{where}: queue {name} cannot be expressed: write "queue: drop-tail"')
    if not isinstance(direction.delay, ConstantDelay):
        raise DescriptionError(
            f"{where}: delay {delays.words(direction.delay)} cannot be expressed: write a constant one"
        )
    match direction.loss:
        case NoLoss():
            loss_ppb = 0
        case BernoulliLoss(ppb):
            loss_ppb = ppb
        case other:
            raise DescriptionError(
                f'{where}: loss {losses.words(other)} cannot be expressed: write a share like "0.1%"'
            )
    queue = direction.queue
    return SimulatedDirection(
        rate_bps=direction.rate_bps,
        delay_ns=direction.delay.delay_ns,
        limit_packets=queue.limit_packets,
        limit_bytes=queue.limit_bytes if queue.limit_packets is None else None,
        loss_ppb=loss_ppb,
        overhead_bytes=direction.framing.overhead_bytes,
    )


def _plain(wire: Wire, interfaces: dict[End, Interface]) -> NetworkLink:
    forward, backward = (_card(interfaces[end], wire.link) for end in (wire.a, wire.b))
    return NetworkLink(wire.link, wire.a.node, wire.b.node, "access", forward, backward, False)


def _card(interface: Interface, link: str) -> SimulatedDirection:
    """A card's rate and queue, on a link without delay."""
    card = interface.egress
    if not isinstance(card, Psp | Tbf) or not card.rate_bps:
        raise DescriptionError(f'{link}: has no rate: write one, like "access: {{rate: 1Gbit/s}}"')
    overhead = card.overhead_bytes + ETHERNET_HEADER
    packets, rest = divmod(card.limit_bytes, interface.mtu + overhead)
    # A token bucket counts bytes, also where packets were meant.
    meant = None if rest else packets
    limit = card.limit_packets if isinstance(card, Psp) else meant
    return SimulatedDirection(
        rate_bps=card.rate_bps,
        delay_ns=0,
        limit_packets=limit,
        limit_bytes=card.limit_bytes if limit is None else None,
        loss_ppb=0,
        overhead_bytes=overhead,
    )
