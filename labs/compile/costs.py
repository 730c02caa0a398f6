"""Costs of links, as routing protocols add them up, for which the shortest-delay paths are the only cheapest ones.

Comes in: the routers' graph, whose edges carry an RTT in ns and a number that breaks ties, and the next hops wanted
towards each router. Goes out: whole costs from 1 to what the protocol carries, or None where these are too coarse.
A cost has three parts: the RTT in units that use the room there is, a hop, and the first bits of the tie's number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx

# The tie's bits that a cost shows, and how many times all of them a hop weighs. The finer ones come first: what room
# hops and ties take is lost to the RTT.
_PARTS = [(0, 1), *((bits, times) for bits in (3, 5, 7, 9, 10) for times in (1, 4, 16))]
_TIE_BITS = 32

Graph = Any  # nx.Graph[str]; edges have `rtt_ns` and `tie`, 32 bits


def of_links(
    graph: Graph, next_hops: Mapping[str, Mapping[str, str]], largest: int
) -> dict[tuple[str, str], int] | None:
    """The cost of each edge; None where no choice gives these next hops and no others."""
    for costs in _choices(graph, largest):
        if all(towards(graph, root, costs) == hops for root, hops in next_hops.items()):
            return costs
    return None


def nearest(graph: Graph, largest: int) -> dict[tuple[str, str], int]:
    """Costs whose cheapest paths are unique, whatever they are; ValueError where even these cannot be had."""
    for costs in _choices(graph, largest):
        if all(towards(graph, root, costs) is not None for root in graph):
            return costs
    raise ValueError("no costs tell all paths apart")


def towards(graph: Graph, root: str, costs: Mapping[tuple[str, str], int]) -> dict[str, str] | None:
    """Each router's next hop towards `root` by cost; None where a router has two that are equally good."""

    def cost(a: str, b: str, _: Any) -> int:
        return costs[min(a, b), max(a, b)]

    found, _ = nx.dijkstra_predecessor_and_distance(graph, root, weight=cost)
    if any(len(hops) > 1 for hops in found.values()):
        return None
    return {router: hops[0] for router, hops in found.items() if hops}


def _choices(graph: Graph, largest: int) -> Iterator[dict[tuple[str, str], int]]:
    rtts = {(min(a, b), max(a, b)): (edge["rtt_ns"], edge["tie"]) for a, b, edge in graph.edges(data=True)}
    longest_ns = max((rtt for rtt, _ in rtts.values()), default=0)
    # As coarse as keeps the RTTs of equal links equal however they are added up.
    step_ns = math.gcd(*(rtt for rtt, _ in rtts.values())) if rtts else 0
    for bits, times in _PARTS:
        hop = times << bits
        room = largest - hop - (1 << bits)
        if room < 1:
            continue
        exact = step_ns and longest_ns // step_ns <= room
        whole, part = (1, step_ns) if exact else (room, longest_ns)
        if exact:  # the more room the better: hops and ties never outweigh a step then
            whole = room // (longest_ns // step_ns)
        yield {
            ends: hop + (tie >> (_TIE_BITS - bits) if bits else 0) + (rtt * whole // part if part else 0)
            for ends, (rtt, tie) in rtts.items()
        }
