"""The plan: what machines execute.

Everything is decided: names, addresses, routes, stages of every link, CPU placement, seeds. Integers, the unit
in the key; probabilities in parts per billion. `labs/node/src/plan.rs` and `emulator/src/config.rs` read the
same keys; unknown ones are refused on both sides. Two compilations of one description are byte-identical.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import orjson

FORMAT = "ewan-plan/2"

Ppb = int


@dataclass(frozen=True, slots=True)
class Framing:
    """What a packet's length counts: max(bytes of the IP packet + overhead, minimum)."""

    overhead_bytes: int
    minimum_bytes: int


@dataclass(frozen=True, slots=True)
class Queue:
    """Limits count packets that wait, not the one in service; bytes as `framing` counts them."""

    limit_packets: int | None
    limit_bytes: int | None
    discipline: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link: impair → queue → rate → delay line (emulator/src/config.rs)."""

    framing: Framing
    rate_bps: int
    loss: dict[str, Any]
    corrupt_ppb: Ppb
    duplicate_ppb: Ppb
    queue: Queue
    delay: dict[str, Any]
    reorder: bool
    seed: int
    store_packets: int
    store_bytes: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    address: str
    mac: str


@dataclass(frozen=True, slots=True)
class Interface:
    name: str
    mac: str
    mtu: int
    addresses: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]
    egress: dict[str, Any]
    """The root queueing discipline by `kind`: none, fifo, tbf, and psp at hosts of the virtual clock."""
    steer: bool


@dataclass(frozen=True, slots=True)
class Route:
    to: str
    via: str
    interface: str


@dataclass(frozen=True, slots=True)
class Service:
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


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    kind: Literal["host", "router", "switch", "emulator"]
    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...]
    """Those of the lab's start: with a routing protocol a router's others come from its neighbours."""
    sysctls: dict[str, str]
    services: tuple[Service, ...]


@dataclass(frozen=True, slots=True)
class End:
    node: str
    interface: str


@dataclass(frozen=True, slots=True)
class Wire:
    a: End
    b: End


@dataclass(frozen=True, slots=True)
class Link:
    """An emulated link: a node of its own between two neighbours; `forward` goes from a to b.

    `backend`: user, our own process; kernel, netem with psp below it; tbf, netem with a token bucket below it.
    """

    name: str
    role: Literal["wan", "access"]
    backend: Literal["user", "kernel", "tbf"]
    node: str
    port_a: str
    port_b: str
    a: End
    b: End
    forward: Direction
    backward: Direction


@dataclass(frozen=True, slots=True)
class Spinner:
    cpu: int
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two end hosts that the topology means to talk; `rtt_ns` is propagation only, both ways."""

    source: str
    sink: str
    rtt_ns: int
    bottleneck_bps: int
    links: tuple[str, ...]


Routing = Literal["static", "ospf", "bgp", "isis"]


@dataclass(frozen=True, slots=True)
class Containers:
    """What only a lab of containers has.

    `management`: nodes have the engine's network at eth0 and their own interfaces from eth1 on; `dashboards`:
    Prometheus and Grafana beside the nodes; `ovs_bridge`: switches are bridges of the host's Open vSwitch.
    """

    management: bool = False
    dashboards: bool = False
    ovs_bridge: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
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
    format: str = FORMAT


def to_json(plan: Plan) -> bytes:
    """The plan as indented JSON with sorted keys: equal plans give equal bytes."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(plan, option=options)


def digest(plan: Plan) -> str:
    """SHA-256 of `to_json`, which names the plan in every record."""
    return hashlib.sha256(to_json(plan)).hexdigest()


def from_json(text: bytes) -> Plan:
    """The plan in `text`; ValueError for another format, an unknown or missing key, or a value of the wrong type."""
    data = orjson.loads(text)
    found = data.get("format") if isinstance(data, dict) else None
    if found != FORMAT:
        raise ValueError(f"format is {found!r}, this version reads {FORMAT!r}")
    plan = _read(Plan, data, "plan")
    assert isinstance(plan, Plan)
    return plan


def _read(kind: Any, data: Any, where: str) -> Any:
    """`data` as the annotated type `kind`: dataclasses, tuples of one type, unions, literals, plain values."""
    if isinstance(kind, type) and is_dataclass(kind):
        if not isinstance(data, dict):
            raise ValueError(f"{where} is no object")
        hints = _hints(kind)
        for key in data.keys() ^ hints.keys():
            raise ValueError(f"{where} has {'an unknown' if key in data else 'no'} key {key!r}")
        return kind(**{key: _read(hint, data[key], f"{where}.{key}") for key, hint in hints.items()})
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError(f"{where} is no list")
        return tuple(_read(parts[0], item, f"{where}[{index}]") for index, item in enumerate(data))
    if origin is Literal:
        allowed = data in parts
    elif origin is dict:
        allowed = isinstance(data, dict) and (parts[1] is Any or all(isinstance(v, parts[1]) for v in data.values()))
    else:
        allowed = type(data) in (parts or (kind,))
    if not allowed:
        raise ValueError(f"{where} is {data!r}")
    return data


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
