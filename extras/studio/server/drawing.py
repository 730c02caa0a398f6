"""A description as the page draws it: nodes, links with their settings each way, pairs with RTT, bottleneck and BDP.

In: the text of a description, and its file. Out: a drawing, or the reason why the text is no lab, with the line.
Nothing is made and nothing measured; the plan is the same as that of `ewan lab compile`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from ewan.labs import host, spec
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.link import Direction
from ewan.labs.link import delay as delays
from ewan.labs.link.direction import column_words, impairment_words
from ewan.labs.plan import Plan, digest
from ewan.labs.render.places import places
from ewan.labs.render.svg import PictureEdge, bottlenecks, edges_of

NodeKind = Literal["host", "router", "switch"]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node; `x` and `y` in pixels, y downwards."""

    name: str
    kind: NodeKind
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class DrawnWay:
    """One direction of a link: the settings that a packet meets, in order; `words` describe it for people."""

    rate_bps: int
    delay_ns: int
    limit_bytes: int | None
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link between two nodes; a plain one, a wire, has no ways. `bottleneck_of`: so many pairs."""

    name: str
    a: str
    b: str
    role: Literal["wan", "access", "plain"]
    forward: DrawnWay | None
    backward: DrawnWay | None
    bottleneck_of: int


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """A pair of hosts that the lab means to talk; `links` are those of the way there, by name."""

    source: str
    sink: str
    rtt_ns: int
    bottleneck: str
    bottleneck_bps: int
    bdp_bytes: int
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of a lab that is drawn."""

    lab: str
    topology: str
    routing: str
    plan_sha256: str
    nodes: tuple[DrawnNode, ...]
    links: tuple[DrawnLink, ...]
    pairs: tuple[DrawnPair, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a text is no lab; `line` counts from 1."""

    line: int
    message: str


def facts(virtual: bool) -> HostFacts:
    """The facts about the machine, or about the virtual clock's, which is the same everywhere."""
    return host.virtual_facts() if virtual else host.facts()


def described(text: str, file: Path, of_host: HostFacts, *, alone: bool = False) -> tuple[Drawing, Plan] | Refusal:
    """The drawing and the plan of a description, or its refusal; `file`: its name gives the lab its own, and other
    files are found beside it. `alone`: a description that names files is refused."""
    try:
        found = spec.parse(text, file, alone=alone)
        plan = compile_spec(found, of_host)
    except spec.DescriptionError as error:
        return refusal_of(str(error), file)
    return drawing(plan, found.description.layout), plan


def refusal_of(message: str, file: Path) -> Refusal:
    """An error of a text that was read as `file`, at its line."""
    found = re.match(re.escape(str(file)) + r":(?:(\d+):)? ?", message)
    line = int(found[1]) if found and found[1] else 1
    return Refusal(line, message[found.end() :] if found else message)


def drawing(plan: Plan, layout: Mapping[str, tuple[int, int]] = MappingProxyType({})) -> Drawing:
    """A plan as it is drawn; `layout`: where nodes are that a person has put somewhere."""
    edges = list(edges_of(plan))
    at = places(plan, [(edge.a, edge.b) for edge in edges]) | dict(layout)
    return Drawing(
        plan.lab,
        plan.topology,
        plan.routing,
        digest(plan),
        tuple(
            DrawnNode(node.name, node.kind, round(at[node.name][0], 1), round(at[node.name][1], 1))
            for node in plan.nodes
            if node.kind != "emulator"
        ),
        lines(plan),
        tuple(
            DrawnPair(
                pair.source,
                pair.sink,
                pair.rtt_ns,
                pair.forward.slowest.link,
                pair.bottleneck_bps,
                pair.bottleneck_bps * pair.rtt_ns // (BITS_PER_BYTE * NS_PER_SECOND),
                tuple(hop.link for hop in pair.forward.hops),
            )
            for pair in plan.pairs
        ),
    )


def lines(plan: Plan) -> tuple[DrawnLink, ...]:
    """A plan's links as they are drawn."""
    marks = bottlenecks(plan)
    return tuple(_line(edge, marks.get(edge.name, 0)) for edge in edges_of(plan))


def _line(edge: PictureEdge, bottleneck_of: int) -> DrawnLink:
    link = edge.link
    if link is None:
        return DrawnLink(edge.name, edge.a, edge.b, "plain", None, None, bottleneck_of)
    return DrawnLink(edge.name, edge.a, edge.b, link.role, _way(link.forward), _way(link.backward), bottleneck_of)


def _way(way: Direction) -> DrawnWay:
    """Stages in the order in which a packet meets them."""
    said = column_words(way)
    words = (
        *([f"loss {said['loss']}"] if said["loss"] else []),
        *impairment_words(way),
        f"queue {said['buffer']} {said['queue']}".strip(),
        f"rate {said['rate']}",
        f"delay {said['delay']}",
    )
    return DrawnWay(way.rate_bps, delays.nominal_ns(way.delay), way.queue.limit_bytes, words)
