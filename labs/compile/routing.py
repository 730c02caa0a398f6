"""What routers run where neighbours, not the plan, tell them the way: FRRouting's daemons and their configuration.

Comes in: a protocol, and each router's interfaces with what is at their other ends. Goes out: the router's services,
in the order in which they start: zebra, which puts routes into the kernel, then the protocol's own. Written for
FRRouting 8.4; all its files lie in the node's own directory, and only a socket there leads to its terminals.

Failures are seen by the carrier, which an emulated link that is down does not have: so hellos are frequent enough for
neighbours to be found soon, and a neighbour is given up late enough for full queues and lossy links.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labs.plan import Service
from labs.units import NS_PER_SECOND

Protocol = Literal["ospf", "bgp", "isis"]

LARGEST_COST = {
    "ospf": 0xFFFE,  # RFC 2328, A.4.2; one more is the last resort of RFC 6987
    "isis": 0xFFFFFE,  # wide metrics, RFC 5305, section 3
    "bgp": 0xFFFFFE,  # added up in MULTI_EXIT_DISC, of 32 bits: 256 hops
}

HELLO_S = 1
DEAD_S = 10
_KEEPALIVE_S, _HOLD_S = 3, 10
_PRIVATE_AS, _PRIVATE_AS_4 = (64512, 1023), 4_200_000_000  # RFC 6996
_LSP_BYTES = 1497
_LLC_BYTES = 3


@dataclass(frozen=True, slots=True)
class Peer:
    """The router at the other end of a link: its addresses there, its number in the lab, the link's cost and RTT."""

    addresses: tuple[str, ...]
    number: int
    cost: int
    rtt_ns: int


@dataclass(frozen=True, slots=True)
class Attachment:
    """One interface of a router: its networks, and the router at the other end, if that is one."""

    interface: str
    mtu: int
    networks: tuple[str, ...]
    peer: Peer | None


@dataclass(frozen=True, slots=True)
class Router:
    """`number`: from 1 on, its own in the lab; `identity`: 32 bits written as an IPv4 address."""

    name: str
    number: int
    identity: str
    attachments: tuple[Attachment, ...]


def identity(number: int, addresses: Sequence[str]) -> str:
    """A router's first IPv4 address, else one made of its number."""
    v4 = [address for address in addresses if ":" not in address]
    return v4[0] if v4 else str(ipaddress.IPv4Address(0x0A000000 + number))


def link_local(mac: str) -> str:
    """The address that the kernel gives an interface by its MAC (RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    low = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + low))


def sysctls(router: Router, with_v6: bool) -> dict[str, str]:
    """What a router needs of its kernel: no route over a dead link; link-local addresses, for OSPFv3."""
    found = {"net/ipv4/conf/all/ignore_routes_with_linkdown": "1"}
    if with_v6:
        found["net/ipv6/conf/all/ignore_routes_with_linkdown"] = "1"
        for attachment in router.attachments:
            found[f"net/ipv6/conf/{attachment.interface}/addr_gen_mode"] = "0"
    return found


def services(protocol: Protocol, router: Router, routers: int, with_v4: bool, with_v6: bool) -> tuple[Service, ...]:
    """The daemons of a router in a lab of so many."""
    daemons = [_daemon("zebra", f"hostname {router.name}\n", "zserv.api")]
    if protocol == "ospf":
        daemons += [_daemon("ospfd", _ospf(router), "ospfd.vty")] if with_v4 else []
        daemons += [_daemon("ospf6d", _ospf6(router), "ospf6d.vty")] if with_v6 else []
    elif protocol == "isis":
        daemons.append(_daemon("isisd", _isis(router, with_v4, with_v6), "isisd.vty"))
    else:
        daemons.append(_daemon("bgpd", _bgp(router, routers), "bgpd.vty"))
    return tuple(daemons)


def _daemon(name: str, text: str, ready: str) -> Service:
    """One that stays in the foreground and listens to no TCP port for commands.

    The group is the one that Debian's package lets use FRRouting's terminals: no user outside it may run a daemon.
    """
    argv = [name, "-u", "root", "-g", "frrvty", "-P", "0", "-f", f"{{run}}/{name}.conf", "-i", f"{{run}}/{name}.pid"]
    argv += ["-z", "{run}/zserv.api", "--vty_socket", "{run}", "--log", "stdout", "--log-level", "informational"]
    return Service(name, "daemon", tuple(argv), {f"{name}.conf": text}, ready)


def _section(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, *(f" {line}" for line in lines), "exit", "!\n"])


def _patience_s(peer: Peer) -> int:
    """Longer than a question and its answer take over a link, in whole seconds."""
    return 2 + 2 * peer.rtt_ns // NS_PER_SECOND


def _ospf(router: Router) -> str:
    """OSPFv2, RFC 2328: every link between routers is point-to-point; the others are announced only."""
    text = f"hostname {router.name}\n"
    for at in router.attachments:
        lines = ["ip ospf network point-to-point", "ip ospf area 0.0.0.0"]
        if at.peer is None:
            lines += ["ip ospf passive"]
        else:
            lines += [f"ip ospf cost {at.peer.cost}", f"ip ospf hello-interval {HELLO_S}"]
            lines += [f"ip ospf dead-interval {_dead_s(at.peer)}"]
            lines += [f"ip ospf retransmit-interval {_patience_s(at.peer)}"]
        text += _section(f"interface {at.interface}", lines)
    # Changes are told and followed at once, as a failure's other end tells its own part just as soon.
    lines = [f"ospf router-id {router.identity}", "maximum-paths 1", "timers throttle spf 10 50 500"]
    lines += ["timers throttle lsa all 0", "timers lsa min-arrival 0"]
    return text + _section("router ospf", lines)


def _ospf6(router: Router) -> str:
    """OSPFv3, RFC 5340, to the same costs."""
    text = f"hostname {router.name}\n"
    for at in router.attachments:
        lines = ["ipv6 ospf6 area 0.0.0.0", "ipv6 ospf6 network point-to-point"]
        if at.peer is None:
            lines += ["ipv6 ospf6 passive"]
        else:
            lines += [f"ipv6 ospf6 cost {at.peer.cost}", f"ipv6 ospf6 hello-interval {HELLO_S}"]
            lines += [f"ipv6 ospf6 dead-interval {_dead_s(at.peer)}"]
            lines += [f"ipv6 ospf6 retransmit-interval {_patience_s(at.peer)}"]
        text += _section(f"interface {at.interface}", lines)
    lines = [f"ospf6 router-id {router.identity}", "maximum-paths 1", "timers throttle spf 10 50 500"]
    return text + _section("router ospf6", [*lines, "timers lsa min-arrival 0"])


def _dead_s(peer: Peer) -> int:
    return DEAD_S + _patience_s(peer)


def _isis(router: Router, with_v4: bool, with_v6: bool) -> str:
    """IS-IS, RFC 1195 and 5308: one area of level 2, wide metrics, one topology for both families."""
    number = f"{router.number:012d}"
    mtu = min(at.mtu for at in router.attachments)
    # The interval comes before the level: what the level sets going keeps the interval of that moment, 30 s.
    lines = ["lsp-gen-interval 1", "is-type level-2-only", "metric-style wide"]
    lines += [f"lsp-mtu {min(_LSP_BYTES, mtu - _LLC_BYTES)}"]
    lines += ["spf-delay-ietf init-delay 10 short-delay 50 long-delay 500 holddown 2000 time-to-learn 500"]
    lines += [f"net 49.0001.{number[:4]}.{number[4:8]}.{number[8:]}.00"]
    text = f"hostname {router.name}\n" + _section("router isis lab", lines)
    for at in router.attachments:
        lines = ["ip router isis lab"] if with_v4 else []
        lines += ["ipv6 router isis lab"] if with_v6 else []
        if at.peer is None:
            lines += ["isis passive"]
        else:
            lines += ["isis network point-to-point", "isis circuit-type level-2-only", f"isis metric {at.peer.cost}"]
            lines += [f"isis hello-interval {HELLO_S}", f"isis hello-multiplier {_dead_s(at.peer) // HELLO_S}"]
            lines += ["no isis hello padding"]
        text += _section(f"interface {at.interface}", lines)
    return text


def _bgp(router: Router, routers: int) -> str:
    """External BGP, RFC 4271, on every link between routers, each an autonomous system of its own.

    A route is not judged by how many systems it crosses but by its delay: each router adds the cost of the link that it
    heard a route over to MULTI_EXIT_DISC, which is handed on. Paths are then the same as with the other protocols.
    """
    first, most = _PRIVATE_AS
    system = (first if routers <= most else _PRIVATE_AS_4) - 1
    peers = [(at, at.peer) for at in router.attachments if at.peer is not None]
    # Before the neighbours that use them: a map that comes later is waited for.
    text = f"hostname {router.name}\n"
    for at, peer in peers:
        text += _section(f"route-map over-{at.interface} permit 10", [f"set metric +{peer.cost}"])
    lines = [f"bgp router-id {router.identity}", "no bgp ebgp-requires-policy", "no bgp default ipv4-unicast"]
    lines += ["bgp bestpath as-path ignore", "bgp always-compare-med", "bgp bestpath compare-routerid"]
    lines += [f"timers bgp {_KEEPALIVE_S} {_HOLD_S}"]
    families: dict[str, list[str]] = {"ipv4": [], "ipv6": []}
    for at in router.attachments:
        for network in at.networks:
            families[_family(network)] += [f"network {network}"]
    for at, peer in peers:
        for address in peer.addresses:
            neighbour = f"neighbor {address}"
            lines += [f"{neighbour} remote-as {system + peer.number}", f"{neighbour} advertisement-interval 0"]
            lines += [f"{neighbour} timers connect {_patience_s(peer)}"]
            families[_family(address)] += [
                f"{neighbour} activate",
                f"{neighbour} route-map over-{at.interface} in",
                f"{neighbour} attribute-unchanged med",
            ]
    for family, its in families.items():
        if its:
            lines += [f"address-family {family} unicast", " maximum-paths 1", *(f" {line}" for line in its)]
            lines += ["exit-address-family"]
    return text + _section(f"router bgp {system + router.number}", lines)


def _family(address: str) -> str:
    return "ipv6" if ":" in address else "ipv4"
