"""Random graphs come up in the virtual clock, with the RTTs and on the links that follow from their descriptions.

5 to 40 nodes, IPv4, IPv6 or both. Of several pairs the round-trip time of a lone packet is compared with what networkx
finds in the description, to the nanosecond but for rounding, and the links whose counters move with the plan's paths.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from ewan.labs import host
from ewan.labs.compile import compile
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Plan
from ewan.labs.spec import parse
from tests.paths import PACKET_BYTES, Ends, measured

TIER = "virtual"
QUICK = 20
LONG = 3000

FRAME_BYTES = 38
"""What a packet counts on a link beyond its own bytes: `framing: wire`."""
MOST_PAIRS = 4
ROUNDED_NS = 2
"""Each link rounds the time of a packet up to a whole nanosecond, each way; the clock's reading is one more."""

RATES = {"1Mbit/s": 10**6, "10Mbit/s": 10**7, "100Mbit/s": 10**8}


@dataclass(frozen=True)
class Drawn:
    """A description, and what must follow from it. Edges of `graph` have `rtt_ns`, both ways, and `bps`."""

    text: str
    graph: nx.Graph[str]
    hosts: tuple[str, ...]


def draw(random_: random.Random) -> Drawn:
    """A tree of routers with more links between them, and hosts on access links, plain or with a delay."""
    nodes = random_.randint(5, 40)
    hosts = [f"h{number}" for number in range(random_.randint(2, max(2, nodes // 2)))]
    routers = [f"r{number}" for number in range(nodes - len(hosts))]
    random_.shuffle(routers)
    wan, access = random_.choice([*RATES]), random_.choice([*RATES])
    graph: nx.Graph[str] = nx.Graph()

    def link(a: str, b: str, delay_us: int, bps: int) -> str:
        graph.add_edge(a, b, rtt_ns=2000 * delay_us, bps=bps)
        ends = (a, b) if random_.random() < 0.5 else (b, a)
        return f"      - {{between: [{', '.join(ends)}], delay: {delay_us}us}}"

    # A few delays only, so that many paths are equally long.
    delays = [random_.randint(0, 20_000) for _ in range(random_.choice([1, 3, 50]))]
    links = [
        link(random_.choice(routers[:number]), router, random_.choice(delays), RATES[wan])
        for number, router in enumerate(routers)
        if number
    ]
    for _ in range(random_.randint(0, len(routers))):
        a, b = random_.choice(routers), random_.choice(routers)
        if a != b and not graph.has_edge(a, b):
            links.append(link(a, b, random_.choice(delays), RATES[wan]))
    for name in hosts:
        links.append(link(name, random_.choice(routers), random_.choice([0, 0, random_.choice(delays)]), RATES[access]))
    random_.shuffle(links)
    lines = [f"ip: {random_.choice(['4', '6', 'dual'])}", "dither: 0", f"wan: {{rate: {wan}, buffer: 100pkt}}"]
    lines += [f"access: {{rate: {access}, buffer: 100pkt}}", "topology:", "  graph:"]
    lines += [f"    hosts: [{', '.join(hosts)}]", f"    routers: [{', '.join(routers)}]", "    links:", *links]
    if not any(edge["rtt_ns"] for _, _, edge in graph.edges(data=True)):
        lines.insert(0, "rtt: 0ms")
    return Drawn("\n".join(lines) + "\n", graph, tuple(hosts))


def expected_ns(drawn: Drawn, source: str, sink: str) -> tuple[float, int]:
    """The round-trip time of a lone packet on the shortest path, of equally long ones that of the fewest links; and
    how many links that is."""

    def weight(a: str, b: str, edge: dict[str, int]) -> int:
        return (edge["rtt_ns"] << 16) + 1

    path = nx.dijkstra_path(drawn.graph, source, sink, weight=weight)
    edges = [drawn.graph.edges[step] for step in nx.utils.pairwise(path)]
    bits = 8 * (PACKET_BYTES + FRAME_BYTES)
    return sum(edge["rtt_ns"] + 2 * bits * 10**9 / edge["bps"] for edge in edges), len(edges)


def check(plan: Plan, pairs: list[Ends], moved: list[set[tuple[str, str]]]) -> None:
    """The links whose counters moved are the emulated ones of the plan's paths."""
    forwarding, emulated = Forwarding(plan), {link.name for link in plan.links}
    for (source, sink), links in zip(pairs, moved, strict=True):
        hops = forwarding.path(source, sink).hops
        named = {(hop.link, hop.direction) for hop in hops if hop.link in emulated}
        assert links == named, f"{source} to {sink}: counters of {sorted(links)} moved, the plan says {sorted(named)}"


def trial(seed: int, place: Path) -> None:
    random_ = random.Random(seed)
    drawn = draw(random_)
    try:
        plan = compile(parse(drawn.text, Path("torture.lab.yaml")), host.virtual_facts())
        ends = [(a, b) for a in drawn.hosts for b in drawn.hosts if a != b]
        pairs = random_.sample(ends, min(len(ends), MOST_PAIRS))
        found, moved = measured(plan, pairs, place / "run")
        for (source, sink), rtt_ns in zip(pairs, found, strict=True):
            wanted, links = expected_ns(drawn, source, sink)
            off = rtt_ns - wanted
            assert -1 <= off <= 2 * ROUNDED_NS * links + 1, (
                f"{source} to {sink}: RTT {rtt_ns} ns, {wanted} ns expected over {links} links"
            )
        check(plan, pairs, moved)
    except Exception as error:
        error.add_note(drawn.text)
        raise
