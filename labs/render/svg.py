"""A plan as a picture: hosts, switches, routers, and each link with its rate and delay, as SVG text.

Comes in: a plan. Goes out: an SVG document without scripts or fonts of its own, equal for equal plans. Routers are
placed by the kind of topology, hosts around their router on the side away from the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from labs.plan import Link, Plan
from labs.stages import DelayTable, Direction
from labs.units import Duration, Rate

Point = tuple[float, float]
STEP = 190.0
LEAF = 120.0
MARGIN = 90.0
_MANY = 60  # beyond this number of links, links are drawn without words

_STYLE = """text{font:11px sans-serif;fill:#223;paint-order:stroke;stroke:#fff;stroke-width:3px}
.switch{fill:#9ab}.host{fill:#fff;stroke:#4a6785;stroke-width:1.5}.router{fill:#4a6785}.router+text{font-weight:bold}
.wan{stroke:#c2571a;stroke-width:2.5}.access{stroke:#9ab;stroke-width:1.5}.slow{stroke:#c2571a;stroke-width:1.5;
stroke-dasharray:5 3}.word{fill:#8a3b0c;text-anchor:middle}.name{text-anchor:middle}"""


def picture(plan: Plan) -> str:
    """The topology as an SVG document."""
    edges = list(_edges(plan))
    places = _places(plan, [(a, b) for a, b, _ in edges])
    left, top = min(x for x, _ in places.values()) - MARGIN, min(y for _, y in places.values()) - MARGIN
    width = max(x for x, _ in places.values()) + MARGIN - left
    height = max(y for _, y in places.values()) + MARGIN - top
    at = {name: (x - left, y - top) for name, (x, y) in places.items()}
    words = len(plan.links) <= _MANY
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(plan.lab)}: {escape(plan.topology)}</title>",
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for a, b, link in edges:
        (x1, y1), (x2, y2) = at[a], at[b]
        look = "access" if link is None else "wan" if link.role == "wan" else "slow"
        lines.append(f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
        if link is not None and words:
            x, y = (x1 + x2) / 2, (y1 + y2) / 2
            lines.append(f'<text class="word" x="{x:.1f}" y="{y - 6:.1f}">{escape(link.name)}</text>')
            lines.append(f'<text class="word" x="{x:.1f}" y="{y + 14:.1f}">{escape(_words(link))}</text>')
    for node in plan.nodes:
        if node.kind != "emulator":
            x, y = at[node.name]
            size = 11 if node.kind == "router" else 8
            lines.append(f'<circle class="{node.kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>')
            if words or node.kind == "router":
                lines.append(f'<text class="name" x="{x:.1f}" y="{y + size + 13:.1f}">{escape(node.name)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _words(link: Link) -> str:
    """`1Gbit/s 50ms`; both directions where they differ."""

    def of(way: Direction) -> str:
        return f"{Rate(way.rate_bps)} {'table' if isinstance(way.delay, DelayTable) else Duration(way.delay.delay_ns)}"

    there, back = of(link.forward), of(link.backward)
    return there if there == back else f"→ {there} ← {back}"


def _edges(plan: Plan) -> Iterator[tuple[str, str, Link | None]]:
    """Links between hosts, switches and routers, emulated or not."""
    emulators = {link.node for link in plan.links}
    for link in plan.links:
        yield link.a.node, link.b.node, link
    for wire in plan.wires:
        if wire.a.node not in emulators and wire.b.node not in emulators:
            yield wire.a.node, wire.b.node, None


def _places(plan: Plan, edges: list[tuple[str, str]]) -> dict[str, Point]:
    routers = [node.name for node in plan.nodes if node.kind == "router"]
    known = set(routers)
    core = [(a, b) for a, b in edges if a in known and b in known]
    places = _routers(plan.topology, routers, core)
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
        x, y = places[router]
        busy = [math.atan2(places[n][1] - y, places[n][0] - x) for n in neighbours[router]]
        sectors = _free_sectors(busy)
        for number, (angle, span) in enumerate(sectors):
            here = hosts[number :: len(sectors)]
            reach = max(LEAF, 26.0 * len(here) / span)
            for index, host in enumerate(here):
                turn = angle + span * (index + 0.5) / len(here)
                places[host] = (x + reach * math.cos(turn), y + reach * math.sin(turn))
    for switch, router in above.items():
        places[switch] = _switch_place(places[router], [places[host] for host in leaves[router]])
    return places


def _switches(plan: Plan, edges: list[tuple[str, str]], routers: set[str]) -> dict[str, str]:
    """Each switch and its router."""
    switches = {node.name for node in plan.nodes if node.kind == "switch"}
    ends = [(a, b) if a in switches else (b, a) for a, b in edges]
    return {switch: router for switch, router in ends if switch in switches and router in routers}


def _switch_place(router: Point, hosts: list[Point]) -> Point:
    """Where a switch is drawn: half way to its router's hosts, on the side where most of them are."""
    angles = [math.atan2(y - router[1], x - router[0]) for x, y in hosts]
    lean = sum(map(math.cos, angles)), sum(map(math.sin, angles))
    # Hosts on opposite sides lean nowhere: then next to the first of them, but not under its line.
    angle = math.atan2(lean[1], lean[0]) if math.hypot(*lean) > 0.5 else angles[0] + 0.6
    return router[0] + LEAF / 2 * math.cos(angle), router[1] + LEAF / 2 * math.sin(angle)


def _free_sectors(busy: list[float]) -> list[tuple[float, float]]:
    """The sectors without a line to another router, the widest ones: where each begins, how wide; a rim stays free."""
    if not busy:
        return [(-math.pi / 2, 2 * math.pi)]
    turns = sorted(busy)
    gaps = [((b - a) % (2 * math.pi) or 2 * math.pi, a) for a, b in zip(turns, [*turns[1:], turns[0]], strict=True)]
    widest = max(width for width, _ in gaps)
    free = [(begin + width / 6, width * 2 / 3) for width, begin in gaps if width > 0.99 * widest]
    return free if len(free) <= 2 else free[:1]


def _routers(topology: str, routers: list[str], core: list[tuple[str, str]]) -> dict[str, Point]:
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
    around = _by_neighbourhood(routers, core)
    radius = max(STEP, STEP * len(routers) / (2 * math.pi))
    turn = 2 * math.pi / max(1, len(routers))
    return {
        router: (radius * math.cos(index * turn), radius * math.sin(index * turn))
        for index, router in enumerate(around)
    }


def _by_neighbourhood(routers: list[str], core: list[tuple[str, str]]) -> list[str]:
    """The routers depth first, so that many neighbours stand side by side."""
    import networkx as nx  # a tenth of a second, which commands that draw nothing need not wait for

    graph: nx.Graph[str] = nx.Graph(core)
    graph.add_nodes_from(routers)
    return list(nx.dfs_preorder_nodes(graph, routers[0]))
