"""Places a plan's nodes in a drawing: routers by the kind of topology, hosts around their router, away from the middle.

Switches with VLANs are drawn as routers are: hosts are around them, and they are a tree.

Comes in: a plan, its links between hosts, switches and routers. Goes out: a point for each node.
"""

from __future__ import annotations

import math

from ewan.labs.plan import Plan

Point = tuple[float, float]
STEP = 190.0
LEAF = 120.0
SWITCH = 170.0
"""Between a router and its switch, whose port has words of its own."""


def places(plan: Plan, edges: list[tuple[str, str]]) -> dict[str, Point]:
    """In pixels; y grows downwards."""
    routers = [
        node.name
        for node in plan.nodes
        if node.kind == "router" or (node.kind == "switch" and any(port.vlans is not None for port in node.interfaces))
    ]
    known = set(routers)
    core = [(a, b) for a, b in edges if a in known and b in known]
    found = _routers(
        plan.topology, routers, core, any(node.kind == "switch" for node in plan.nodes if node.name in known)
    )
    above = _switches(plan, edges, known)
    leaves: dict[str, list[str]] = {router: [] for router in routers}
    neighbours: dict[str, list[str]] = {router: [] for router in routers}
    for a, b in core:
        neighbours[a].append(b)
        neighbours[b].append(a)
    for a, b in edges:
        if a not in known and a not in above:
            leaves[above.get(b, b)].append(a)
        elif b not in known and b not in above:
            leaves[above.get(a, a)].append(b)
    for router, hosts in leaves.items():
        x, y = found[router]
        busy = [math.atan2(found[n][1] - y, found[n][0] - x) for n in neighbours[router]]
        sectors = _free_sectors(busy)
        for number, (angle, span) in enumerate(sectors):
            here = hosts[number :: len(sectors)]
            switched = SWITCH if router in above.values() else 0.0
            reach = max(LEAF + switched, 26.0 * len(here) / span)
            for index, host in enumerate(here):
                turn = angle + span * (index + 0.5) / len(here)
                found[host] = (x + reach * math.cos(turn), y + reach * math.sin(turn))
    for switch, router in above.items():
        found[switch] = _switch_place(found[router], [found[host] for host in leaves[router]])
    return found


def _switches(plan: Plan, edges: list[tuple[str, str]], routers: set[str]) -> dict[str, str]:
    """Each switch and its router."""
    switches = {node.name for node in plan.nodes if node.kind == "switch"} - routers
    ends = [(a, b) if a in switches else (b, a) for a, b in edges]
    return {switch: router for switch, router in ends if switch in switches and router in routers}


def _switch_place(router: Point, hosts: list[Point]) -> Point:
    """The place of a switch: half way to its router's hosts, on the side on which most of them are."""
    angles = [math.atan2(y - router[1], x - router[0]) for x, y in hosts]
    lean = sum(map(math.cos, angles)), sum(map(math.sin, angles))
    # Hosts on opposite sides lean nowhere: then next to the first of them, but not under its line.
    angle = math.atan2(lean[1], lean[0]) if math.hypot(*lean) > 0.5 else angles[0] + 0.6
    return router[0] + SWITCH * math.cos(angle), router[1] + SWITCH * math.sin(angle)


def _free_sectors(busy: list[float]) -> list[tuple[float, float]]:
    """The sectors without a line to another router, the widest ones: where each begins, how wide; a rim stays free."""
    if not busy:
        return [(-math.pi / 2, 2 * math.pi)]
    turns = sorted(busy)
    gaps = [((b - a) % (2 * math.pi) or 2 * math.pi, a) for a, b in zip(turns, [*turns[1:], turns[0]], strict=True)]
    widest = max(width for width, _ in gaps)
    free = [(begin + width / 6, width * 2 / 3) for width, begin in gaps if width > 0.99 * widest]
    return free if len(free) <= 2 else free[:1]


def _routers(topology: str, routers: list[str], core: list[tuple[str, str]], with_switches: bool) -> dict[str, Point]:
    """Rows stay rows, grids stay grids, four domains surround their core; anything else is a circle, or its tree."""
    if topology == "grid":
        cells = {router: [int(part) for part in router.removeprefix("r").split("-")] for router in routers}
        return {router: (column * STEP, row * STEP) for router, (row, column) in cells.items()}
    if topology == "four-domain":
        corners = [(0.0, 0.0), (-STEP, -STEP), (STEP, -STEP), (STEP, STEP), (-STEP, STEP)]
        return dict(zip(routers, corners, strict=True))
    order = {router: index for index, router in enumerate(routers)}
    if len(core) == len(routers) - 1 and all(order[b] - order[a] == 1 for a, b in core):
        return {router: (index * 2 * STEP, 0.0) for index, router in enumerate(routers)}
    tree = _tree(routers, core) if with_switches else None
    if tree is not None:
        return tree
    around = _by_neighbourhood(routers, core)
    radius = max(STEP, STEP * len(routers) / (2 * math.pi))
    turn = 2 * math.pi / max(1, len(routers))
    return {
        router: (radius * math.cos(index * turn), radius * math.sin(index * turn))
        for index, router in enumerate(around)
    }


def _tree(nodes: list[str], links: list[tuple[str, str]]) -> dict[str, Point] | None:
    """From left to right, from one end of a longest way on; each beside the middle of what is behind it.

    None: they are no tree.
    """
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph(links)
    graph.add_nodes_from(nodes)
    if not nx.is_tree(graph):
        return None
    first = list(nx.single_source_shortest_path_length(graph, nodes[0]))[-1]
    depth = dict(nx.single_source_shortest_path_length(graph, first))
    behind = {node: [other for other in graph[node] if depth[other] > depth[node]] for node in graph}
    found: dict[str, Point] = {}
    rows = 0
    for node in nx.dfs_postorder_nodes(graph, first):
        heights = [found[other][1] for other in behind[node]]
        found[node] = (depth[node] * 1.5 * STEP, sum(heights) / len(heights) if heights else rows * 1.5 * STEP)
        rows += not heights
    return found


def _by_neighbourhood(routers: list[str], core: list[tuple[str, str]]) -> list[str]:
    """The routers depth first, so that many neighbours stand side by side."""
    import networkx as nx  # a tenth of a second, which commands that draw nothing need not wait for

    graph: nx.Graph[str] = nx.Graph(core)
    graph.add_nodes_from(routers)
    return list(nx.dfs_preorder_nodes(graph, routers[0]))
