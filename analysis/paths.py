"""Which links a lab's flows cross, and in which direction.

In: a plan as JSON, pairs of nodes. Out: links with directions. Found by the fewest hops, as routes are in every lab
without a choice of ways; where there is a choice, any of the shortest ways counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from analysis.load import Link

Edge = tuple[str, Link | None]


def crossed(plan: Mapping[str, Any], ends: Iterable[tuple[str, str]]) -> set[Link]:
    """All links, with directions, on the ways from each source to its sink; empty for a plan without links."""
    edges = _edges(plan)
    found: set[Link] = set()
    for source, sink in set(ends):
        found |= _way(edges, source, sink)
    return found


def _edges(plan: Mapping[str, Any]) -> dict[str, list[Edge]]:
    edges: dict[str, list[Edge]] = {}
    emulated = {link["node"] for link in plan.get("links", [])}
    for link in plan.get("links", []):
        a, b = link["a"]["node"], link["b"]["node"]
        edges.setdefault(a, []).append((b, (link["name"], "forward")))
        edges.setdefault(b, []).append((a, (link["name"], "backward")))
    for wire in plan.get("wires", []):
        a, b = wire["a"]["node"], wire["b"]["node"]
        if a in emulated or b in emulated:
            continue  # a link's own wires: the link stands for them
        edges.setdefault(a, []).append((b, None))
        edges.setdefault(b, []).append((a, None))
    return edges


def _way(edges: Mapping[str, list[Edge]], source: str, sink: str) -> set[Link]:
    came: dict[str, tuple[str, Link | None]] = {source: (source, None)}
    waiting = deque([source])
    while waiting and sink not in came:
        node = waiting.popleft()
        for after, link in edges.get(node, []):
            if after not in came:
                came[after] = (node, link)
                waiting.append(after)
    found: set[Link] = set()
    node = sink
    while node in came and node != source:
        node, link = came[node]
        if link is not None:
            found.add(link)
    return found
