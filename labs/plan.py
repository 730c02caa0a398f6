"""The plan: what machines execute.

Everything is decided: names, addresses, routes, stages of every link (`labs/link`), CPU placement, seeds. Integers,
the unit in the key; probabilities in parts per billion. `emulator/plan/src/lib.rs` and `emulator/model/src/config.rs`
read the same keys; unknown ones are refused on both sides. Two compilations of one description are byte-identical.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from ewan.labs.base import codec
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.garbage import uncollected
from ewan.labs.link import Direction, Egress
from ewan.labs.link.direction import Heading
from ewan.labs.link.encapsulation import TunnelKind
from ewan.labs.node_overrides import NodeOverrides


class Neighbour(Struct):
    """A permanent entry of the neighbour table: an address at the other end of a wire, and its MAC address."""

    address: str
    mac: str


class Vlans(Struct):
    """The VLANs of an interface (IEEE 802.1Q): those whose frames have a tag, and that of the untagged ones.

    `parent`: of an interface that is one VLAN of another one of its node, whose frames it sends and takes with the tag.
    """

    tagged: tuple[int, ...]
    untagged: int | None
    parent: str | None


class Encapsulation(Struct):
    """The tunnel of which an interface is an end: what it sends leaves the node in packets from `local` to `remote`.

    `number` tells the lab's tunnels apart: it is the network identifier of a VXLAN, and chooses the port of WireGuard.
    `over`: the interface whose routes the outer packets take, which are those of packets from `local`; if it is empty,
    they take the node's.
    """

    tunnel: str
    kind: TunnelKind
    number: int
    local: str
    remote: str
    over: str = ""
    private_key: str = ""
    """The key of WireGuard, in hexadecimal digits, as the other one."""
    peer_key: str = ""
    """The public key of the other end."""
    calls: bool = False
    """This end of WireGuard begins the handshake, and keeps the tunnel alive."""
    keepalive_s: int = 0
    """0: none."""


class Interface(Struct):
    """An interface of a node. Addresses carry their prefix lengths; `mtu` is in bytes.

    `steer`: the kernel handles the packets that arrive here on the hosts' CPUs (RPS), not on those that spin.
    """

    name: str
    mac: str
    mtu: int
    addresses: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]
    egress: Egress
    """The root queueing discipline; psp at hosts of the virtual clock."""
    steer: bool
    vlans: Vlans | None = None
    """The VLANs of a port of a switch, or of an interface of a host or router with tags, which is after its parent."""
    tunnel: Encapsulation | None = None
    """The tunnel of an interface that is an end of one, and so has no wire; it is after those that have one."""

    @property
    def wired(self) -> bool:
        """Return whether a wire ends here, and neither another interface's VLAN nor a tunnel."""
        return self.tunnel is None and (self.vlans is None or self.vlans.parent is None)


class Route(Struct):
    """A route: the prefix `to` is reached by the neighbour's address `via`, over an interface of the node.

    `source`: only packets from this address take it, before all routes without one. `metric`: of two routes to one
    prefix the one with the smaller metric is taken as long as its link has a carrier. JSON leaves either key out if it
    is empty or 0.
    """

    to: str
    via: str
    interface: str
    source: str = ""
    metric: int = 0


class Service(Struct):
    """A program that belongs to a node and is started in it, after its interfaces, in the node's order.

    `{run}` in a word of `argv` or a file's text is the node's own directory (nodes/NODE of the lab's), where `files`
    are written first. A `setup` comes to its end, with status 0, before the next one starts; a `daemon` goes on, and
    is ready when the file `ready` of the same directory is there.
    """

    name: str
    kind: Literal["daemon", "setup"]
    argv: tuple[str, ...]
    files: dict[str, str]
    ready: str | None


class Stack(Struct):
    """The settings that a host's routes give to its TCP (ip-route(8)).

    `quick_acks` (`quickack`): each segment is acknowledged at once. `window_bytes` (`window`): the receive window with
    which connections begin, by which their scaling is chosen.
    """

    quick_acks: bool
    window_bytes: int | None


class Node(Struct):
    """A machine of the lab: interfaces, routes and sysctls (path below /proc/sys → value)."""

    name: str
    kind: Literal["host", "router", "switch", "emulator"]
    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...]
    """Those that the node is given at the lab's start."""
    sysctls: dict[str, str]
    services: tuple[Service, ...]
    learned_routes: tuple[Route, ...]
    """Those that the routing protocol is to find, at a router: they are not installed. They say which paths are
    right."""
    stack: Stack | None
    """The TCP settings of a host whose TCP differs from that of the lab's other hosts, in its sysctls too."""
    machine: str | None
    """The system of a host that is a machine with a kernel of its own."""
    own: NodeOverrides | None = None
    """The overrides that the description writes for the node; absent from the plan if it writes none."""


class End(Struct):
    """One end of a wire or link: an interface of a node."""

    node: str
    interface: str


class Wire(Struct):
    """A veth pair: a plain link of its own, `forward` from a to b, or one of the two halves of an emulated link."""

    link: str
    """The plain link's own name; the emulated one's name on both of its halves."""
    a: End
    b: End


class Card(Struct):
    """An interface of a node that is a network card of the host, called `name` there.

    `own_mac`: it keeps its MAC address, as who is at the other end of its cable is not of this lab.
    """

    name: str
    end: End
    own_mac: bool


class Hardware(Struct):
    """The external emulator that is a link (docs/how-to/labs/hardware.md).

    `driver` is a name, or the absolute path of a program. `own_queue`: its queue is neither set nor known.
    """

    link: str
    driver: str
    model: str
    address: str
    options: dict[str, str]
    own_queue: bool


class Tunnel(Struct):
    """A wire whose other end is on another machine: a VXLAN (RFC 7348), which is the interface `end` of a node here.

    `link` as of a `Wire`. `local` is an address of this machine, `remote` one of the other; `port` is UDP's, at both.
    The tunnel itself takes `forward_ns` and `backward_ns` in the directions of the link: so much less its emulator
    delays.
    """

    link: str
    end: End
    vni: int
    local: str
    remote: str
    port: int
    forward_ns: int
    backward_ns: int


class Link(Struct):
    """An emulated link: a node of its own between two neighbours; `forward` goes from a to b.

    `backend`: user, our model in a process; ewan, our model in the virtual kernel; kernel, netem with psp below it;
    tbf, netem with a token bucket below it; hardware, a device outside, between two cards of the host, whose names the
    ports are. That one has no node, and its wire is a cable from card to card.
    """

    name: str
    role: Literal["wan", "access"]
    backend: Literal["user", "ewan", "kernel", "tbf", "hardware"]
    node: str
    port_a: str
    port_b: str
    a: End
    b: End
    forward: Direction
    backward: Direction


class Spinner(Struct):
    """A process that runs links, by name, and spins on one CPU."""

    cpu: int
    links: tuple[str, ...]


class Hop(Struct):
    """One direction of a link that packets cross: an emulated link, or a plain one, which is a wire of its own."""

    link: str
    direction: Heading


class NetworkPath(Struct):
    """The hops that packets cross from one host to another, in order.

    `bottleneck` is the position in `hops` of the slowest hop. Of equally slow hops it is the hop that more hosts share:
    a wide-area link, then the port between a switch and its router or another switch, then an access link.
    """

    hops: tuple[Hop, ...]
    bottleneck: int
    bottleneck_bps: int

    @property
    def slowest(self) -> Hop:
        """The hop that is the bottleneck."""
        return self.hops[self.bottleneck]


class Pair(Struct):
    """Two end hosts that the topology means to talk; `rtt_ns` is propagation only, both ways."""

    source: str
    sink: str
    rtt_ns: int
    forward: NetworkPath
    """From source to sink."""
    backward: NetworkPath

    @property
    def bottleneck_bps(self) -> int:
        """From source to sink."""
        return self.forward.bottleneck_bps


Routing = Literal["static", "ospf", "bgp", "isis"]


class Containers(Struct, omit_defaults=False):
    """Properties that only a lab of containers has.

    `management`: nodes have the engine's network at eth0 and their own interfaces from eth1 on; `dashboards`:
    Prometheus and Grafana beside the nodes; `ovs_bridge`: switches are bridges of the host's Open vSwitch.
    """

    management: bool = False
    dashboards: bool = False
    ovs_bridge: bool = False


class OwnKernel(Struct):
    """A virtual kernel that a user added, by its name in the user's library. `sha256`: of its program; empty as long as
    no machine was asked for it."""

    name: str
    sha256: str = ""


class Plan(Document, tag="ewan-plan/3"):
    """A whole lab. `topology` is the kind's word, `host_cpus` are those of hosts and routers."""

    lab: str
    topology: str
    seed: int
    routing: Routing
    containers: Containers
    nodes: tuple[Node, ...]
    wires: tuple[Wire, ...]
    links: tuple[Link, ...]
    spinners: tuple[Spinner, ...]
    pairs: tuple[Pair, ...]
    host_cpus: tuple[int, ...]
    cards: tuple[Card, ...] = ()
    """Interfaces that are the host's own cards. A wire between two of them is a cable; JSON leaves the key out if there
    are none."""
    hardware: tuple[Hardware, ...] = ()
    """The device of each link that is an external emulator; JSON leaves the key out if there are none."""

    tunnels: tuple[Tunnel, ...] = ()
    """The tunnels of the share of a lab that one of several machines has: the wires that end on another one. JSON
    leaves the key out if there are none."""
    always_spins: bool = False
    """Spinners never sleep, also while nothing comes; JSON leaves the key out where they do."""
    kernel: OwnKernel | None = None
    """The virtual kernel of all nodes, where it is one that the user added; JSON leaves the key out where it is the
    default one."""


def tunnels_of(plan: Plan) -> list[str]:
    """The names of the tunnels between nodes of a plan."""
    found = (port.tunnel.tunnel for node in plan.nodes for port in node.interfaces if port.tunnel is not None)
    return list(dict.fromkeys(found))


def to_json(plan: Plan) -> bytes:
    """The plan as indented JSON with sorted keys: equal plans give equal bytes."""
    with uncollected():
        return codec.document(plan)


def digest(plan: Plan) -> str:
    """SHA-256 of `to_json`, which names the plan in every record."""
    return hashlib.sha256(to_json(plan)).hexdigest()


def from_json(text: bytes) -> Plan:
    """The plan in `text`.

    OtherVersionError where another version of ewan wrote it; ValueError for what is no plan, an unknown or missing
    key, or a value of the wrong type.
    """
    plan = codec.decode(Plan, text, "plan")
    if any(not service.argv for node in plan.nodes for service in node.services):
        raise ValueError("plan: a service has no words")
    return plan
