"""Configures FRRouting's daemons on routers that learn routes from neighbours instead of from the plan.

Comes in: a protocol, and each router's interfaces with what is at their other ends. Goes out: the router's services,
in the order in which they start: zebra, which puts routes into the kernel, then the protocol's own. The files are made
from the templates in `frr`, for FRRouting 8.4; they lie in the node's own directory, and only a socket there leads to a
daemon's terminal.

A failed link is seen by its carrier, which an emulated link that is down does not have. So hellos are frequent enough
for neighbours to be found soon, and a neighbour is given up late enough for full queues and lossy links.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.plan import Service

if TYPE_CHECKING:
    import jinja2

Protocol = Literal["ospf", "bgp", "isis"]
FamilyName = Literal["ipv4", "ipv6"]

LARGEST_COST = {
    "ospf": 0xFFFE,  # RFC 2328, A.4.2; one more is the last resort of RFC 6987
    "isis": 0xFFFFFE,  # wide metrics, RFC 5305, section 3
    "bgp": 0xFFFFFE,  # added up in MULTI_EXIT_DISC, of 32 bits: 256 hops
}

TEMPLATES = Path(__file__).resolve().parent / "frr"
HELLO_S = 1
DEAD_S = 10
TIMERS = {"HELLO_S": HELLO_S, "KEEPALIVE_S": 3, "HOLD_S": 10}
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

    @property
    def patience_s(self) -> int:
        """Longer than a question and its answer take over the link, in whole seconds."""
        return 2 + 2 * self.rtt_ns // NS_PER_SECOND

    @property
    def dead_s(self) -> int:
        """The time in seconds for which a neighbour may be silent before it is given up; both ends have the same."""
        return DEAD_S + self.patience_s


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


@dataclass(frozen=True, slots=True)
class BgpNeighbour:
    """One of a router's neighbours in BGP, by one of its addresses; `interface`: the router's own that leads there."""

    address: str
    interface: str
    system: int
    patience_s: int


@dataclass(frozen=True, slots=True)
class Family:
    """The networks that a router announces, and its neighbours, for one address family."""

    name: FamilyName
    networks: tuple[str, ...]
    neighbours: tuple[BgpNeighbour, ...]


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
    """The kernel settings that a router needs: no route over a dead link; link-local addresses, for OSPFv3."""
    found = {"net/ipv4/conf/all/ignore_routes_with_linkdown": "1"}
    if with_v6:
        found["net/ipv6/conf/all/ignore_routes_with_linkdown"] = "1"
        for attachment in router.attachments:
            found[f"net/ipv6/conf/{attachment.interface}/addr_gen_mode"] = "0"
    return found


def services(protocol: Protocol, router: Router, routers: int, with_v4: bool, with_v6: bool) -> tuple[Service, ...]:
    """The daemons of a router in a lab of so many, each with its configuration."""
    daemons = [_daemon("zebra", "zserv.api", router)]
    if protocol == "ospf":
        daemons += [_daemon("ospfd", "ospfd.vty", router)] if with_v4 else []
        daemons += [_daemon("ospf6d", "ospf6d.vty", router)] if with_v6 else []
    elif protocol == "isis":
        number = f"{router.number:012d}"
        net = f"49.0001.{number[:4]}.{number[4:8]}.{number[8:]}.00"
        mtu = min(at.mtu for at in router.attachments)
        lsp_mtu = min(_LSP_BYTES, mtu - _LLC_BYTES)
        daemons.append(
            _daemon("isisd", "isisd.vty", router, net=net, lsp_mtu=lsp_mtu, with_v4=with_v4, with_v6=with_v6)
        )
    else:
        first, most = _PRIVATE_AS
        base = (first if routers <= most else _PRIVATE_AS_4) - 1
        neighbours = list(_neighbours(router, base))
        daemons.append(
            _daemon(
                "bgpd",
                "bgpd.vty",
                router,
                system=base + router.number,
                neighbours=neighbours,
                families=list(_families(router, neighbours)),
            )
        )
    return tuple(daemons)


def _daemon(name: str, ready: str, router: Router, **values: object) -> Service:
    """One that stays in the foreground and listens to no TCP port for commands; `values` are for its template.

    The group may use FRRouting's terminals in Debian's package: no user outside it may run a daemon.
    """
    argv = [name, "-u", "root", "-g", "frrvty", "-P", "0", "-f", f"{{run}}/{name}.conf", "-i", f"{{run}}/{name}.pid"]
    argv += ["-z", "{run}/zserv.api", "--vty_socket", "{run}", "--log", "stdout", "--log-level", "informational"]
    text = _templates().get_template(f"{name}.conf.j2").render(TIMERS, router=router, **values)
    return Service(name, "daemon", tuple(argv), {f"{name}.conf": text}, ready)


@functools.cache
def _templates() -> jinja2.Environment:
    """The environment of the templates, one for this process. It is imported only if a protocol routes."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _neighbours(router: Router, base: int) -> Iterator[BgpNeighbour]:
    """`base`: the number of the lab's first autonomous system, less one."""
    for at in router.attachments:
        if at.peer is not None:
            for address in at.peer.addresses:
                yield BgpNeighbour(address, at.interface, base + at.peer.number, at.peer.patience_s)


def _families(router: Router, neighbours: Sequence[BgpNeighbour]) -> Iterator[Family]:
    """Those that the router has networks or neighbours of."""
    names: tuple[FamilyName, ...] = ("ipv4", "ipv6")
    for name in names:
        networks = tuple(net for at in router.attachments for net in at.networks if _family(net) == name)
        others = tuple(each for each in neighbours if _family(each.address) == name)
        if networks or others:
            yield Family(name, networks, others)


def _family(address: str) -> FamilyName:
    return "ipv6" if ":" in address else "ipv4"
