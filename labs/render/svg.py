"""A plan as a picture: hosts, switches, routers, and at each link what it does to packets, as SVG text.

Comes in: a plan. Goes out: an SVG document without scripts or fonts of its own, equal for equal plans. At an emulated
link stand its rate, delay, buffer, queue discipline and loss; the slowest link of each pair's path is marked, which is
the bottleneck that the table of pairs names. The picture is made larger until no words lie on other things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

from ewan.labs.base.units import Rate
from ewan.labs.link import Direction
from ewan.labs.link.direction import column_words, impairment_words
from ewan.labs.link.egress import limit_words, paced
from ewan.labs.plan import Link, Plan, Wire
from ewan.labs.render import vlan_words
from ewan.labs.render.labels import LETTER, LINE, Box, PictureLabels
from ewan.labs.render.places import Point, places

MARGIN = 30.0
GROWTH = 1.12
MOST_GROWTHS = 18
"""To 7 times the size."""
BESIDE_ALONE = 5
"""Growths before words may stand on their own line."""
LONGEST = 30
"""Letters of a line of words at a link."""
SIZES = {"router": 11.0, "switch": 8.0, "host": 8.0}
SYMBOL = 6.0
"""Radius of a node in the legend."""
GROUND = 6.0
"""A node stands on a ground of its machine's colour, so much wider than itself."""
COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#999999")
"""The colours of machines, distinct for people with any colour vision (Okabe and Ito); after the last the first follows
again."""
_MANY = 60  # beyond this number of links, links are drawn without words

_STYLE = """text{font:11px "DejaVu Sans",Verdana,sans-serif;fill:#223}.back{fill:#fff}
.switch{fill:#9ab}.host{fill:#fff;stroke:#4a6785;stroke-width:1.5}.router{fill:#4a6785}
.wan{stroke:#c2571a;stroke-width:2.5}.access{stroke:#9ab;stroke-width:1.5}.slow{stroke:#c2571a;stroke-width:1.5;
stroke-dasharray:5 3}.bottleneck{stroke:#e0b000;stroke-width:10;stroke-opacity:.55;stroke-linecap:round}
.word{fill:#8a3b0c}.bold{font-weight:bold}.mark{fill:#806000;font-weight:bold}.name,.word,.mark{text-anchor:middle}"""


@dataclass(frozen=True, slots=True)
class PictureEdge:
    """A link between hosts, switches and routers; `link` is None for a plain one, a wire of its own."""

    name: str
    a: str
    b: str
    link: Link | None

    @property
    def look(self) -> str:
        """The class of its line."""
        if self.link is None:
            return "access"
        return "wan" if self.link.role == "wan" else "slow"


def picture(plan: Plan, machine_of: Mapping[str, str] = MappingProxyType({})) -> str:
    """The topology as an SVG document; `machine_of`: of each node of a lab over several machines."""
    edges = list(edges_of(plan))
    natural = places(plan, [(edge.a, edge.b) for edge in edges])
    marks, cards = bottlenecks(plan), _cards(plan)
    usual = Counter(cards.values()).most_common(1)[0][0] if cards else ""
    vlans = vlan_words.of_links(plan)
    words = {edge.name: _words(edge, cards, usual, marks, len(plan.pairs), vlans.get(edge.name, "")) for edge in edges}
    for edge in edges:
        if machine_of and machine_of[edge.a] != machine_of[edge.b]:
            words[edge.name].append(f"tunnel {machine_of[edge.a]} – {machine_of[edge.b]}")
    if len(plan.links) > _MANY:
        words = {}
    scale = 1.0
    for growth in range(MOST_GROWTHS):
        at = {name: (x * scale, y * scale) for name, (x, y) in natural.items()}
        ground = GROUND if machine_of else 0.0
        last = growth == MOST_GROWTHS - 1
        labels, names, told = _labelled(plan, edges, at, words, growth >= BESIDE_ALONE, ground, last)
        if not labels.crowded:
            break
        scale *= GROWTH
    grounds = {name: f"ground{number % len(COLOURS)}" for number, name in enumerate(dict.fromkeys(machine_of.values()))}
    legend = [*_legend(plan, edges, usual, bool(marks)), *((ground, f"on {name}") for name, ground in grounds.items())]
    under = {node: grounds[machine] for node, machine in machine_of.items()}
    return _document(plan, edges, at, labels, names, told, words, marks, legend, under)


def bottlenecks(plan: Plan) -> dict[str, int]:
    """The links that are the slowest of a pair's path, either way, each with of how many pairs."""
    return Counter(name for pair in plan.pairs for name in {pair.forward.slowest.link, pair.backward.slowest.link})


def _labelled(
    plan: Plan,
    edges: Sequence[PictureEdge],
    at: dict[str, Point],
    words: dict[str, list[str]],
    upon: bool,
    ground: float,
    whole: bool,
) -> tuple[PictureLabels, dict[str, Box], dict[str, Box]]:
    """Boxes for the names of nodes, and for the words of links. Where they are not wanted `whole`, it ends at the first
    one that finds no place."""
    shown = [node for node in plan.nodes if node.kind != "emulator"]
    nodes = [Box(*at[node.name], 2 * SIZES[node.kind], 2 * SIZES[node.kind]) for node in shown]
    labels = PictureLabels([(at[edge.a], at[edge.b]) for edge in edges], upon, nodes)
    named = [node for node in shown if words or node.kind == "router"]
    names: dict[str, Box] = {}
    for node in named:
        names[node.name] = labels.at_node(at[node.name], SIZES[node.kind] + ground, node.name)
        if labels.crowded and not whole:
            return labels, names, {}
    told = {edge.name: edge for edge in edges if words.get(edge.name)}
    boxes: dict[str, Box] = {}
    for name, edge in told.items():
        boxes[name] = labels.at_line((at[edge.a], at[edge.b]), words[name])
        if labels.crowded and not whole:
            break
    return labels, names, boxes


def _words(
    edge: PictureEdge, cards: dict[str, str], usual: str, marks: dict[str, int], pairs: int, vlans: str
) -> list[str]:
    """The words beside a link, a line each: its name, its settings, the number of pairs whose bottleneck it is.

    A plain link has words if its cards differ from those of most links, or if several pairs share the bottleneck. Its
    VLANs follow.
    """
    count = marks.get(edge.name, 0)
    marked = [f"bottleneck of {'all' if count == pairs else f'{count} of {pairs}'} pairs"] if count else []
    if pairs == 1 and count:
        marked = ["bottleneck"]
    if edge.link is not None:
        there, back = (_stages(way) for way in (edge.link.forward, edge.link.backward))
        marked = [*([vlans] if vlans else []), *marked]
        if there == back:
            return [edge.name, *there, *marked]
        ways = [*(f"→ {line}" for line in there), *(f"← {line}" for line in back)]
        return [f"{edge.name} ({edge.a} → {edge.b})", *ways, *marked]
    card = cards.get(edge.name, "")
    if card and (card != usual or count > 1):
        return [edge.name, card, *([vlans] if vlans else []), *marked]
    if vlans.startswith("trunk"):
        return [edge.name, vlans]
    return [vlans] if vlans else []


def _stages(way: Direction) -> list[str]:
    """`1Gbit/s 50ms`, `12.5MB drop-tail`, `loss 0.1%`, and what else is done to packets."""
    said, others = column_words(way), ", ".join(impairment_words(way))
    lines = [
        f"{said['rate']} {said['delay']}",
        f"{said['buffer']} {said['queue']}".strip(),
        f"loss {said['loss']}" if said["loss"] else "",
        others,
    ]
    return [line if len(line) <= LONGEST else f"{line[:LONGEST].rpartition(' ')[0]} …" for line in lines if line]


def _cards(plan: Plan) -> dict[str, str]:
    """`10Gbit/s 1.5MB` of each plain link whose ends have a rate."""
    ends = {(node.name, port.name): paced(port.egress) for node in plan.nodes for port in node.interfaces}
    found = {}
    for wire in _plain(plan):
        cards = [card for end in (wire.a, wire.b) if (card := ends[end.node, end.interface]) is not None]
        if cards:
            rates = " / ".join(dict.fromkeys(str(Rate(card.rate_bps)) for card in cards))
            found[wire.link] = f"{rates} {' / '.join(dict.fromkeys(limit_words(card) for card in cards))}"
    return found


def _plain(plan: Plan) -> Iterator[Wire]:
    emulators = {link.node for link in plan.links}
    return (wire for wire in plan.wires if wire.a.node not in emulators and wire.b.node not in emulators)


def edges_of(plan: Plan) -> Iterator[PictureEdge]:
    """Links between hosts, switches and routers, emulated or not."""
    for link in plan.links:
        yield PictureEdge(link.name, link.a.node, link.b.node, link)
    for wire in _plain(plan):
        yield PictureEdge(wire.link, wire.a.node, wire.b.node, None)


def _legend(plan: Plan, edges: Sequence[PictureEdge], usual: str, marked: bool) -> list[tuple[str, str]]:
    """A symbol's class and its meaning, of those that are in the picture; without a symbol, what words say."""
    kinds, looks = {node.kind for node in plan.nodes}, {edge.look for edge in edges}
    meanings = {
        "host": "host",
        "switch": "switch",
        "router": "router",
        "wan": "emulated wide-area link",
        "slow": "emulated access link",
        "access": f"plain link{f': {usual}, where nothing else is written' if usual else ''}",
        "bottleneck": "bottleneck: the slowest link between a pair of hosts, as in the table of pairs",
    }
    there = {*kinds, *looks, *(["bottleneck"] if marked else [])}
    lines = [(what, meaning) for what, meaning in meanings.items() if what in there]
    return [*lines, ("", "at a link: rate and one-way delay, buffer and queue, loss and what else it does")]


def _document(
    plan: Plan,
    edges: Sequence[PictureEdge],
    at: dict[str, Point],
    labels: PictureLabels,
    names: dict[str, Box],
    told: dict[str, Box],
    words: dict[str, list[str]],
    marks: dict[str, int],
    legend: Sequence[tuple[str, str]],
    under: Mapping[str, str],
) -> str:
    left, top = min(box.left for box in labels.taken) - MARGIN, min(box.top for box in labels.taken) - MARGIN
    right = max(box.left + box.width for box in labels.taken) + MARGIN
    bottom = max(box.top + box.height for box in labels.taken) + MARGIN
    width = max(right - left, 2 * MARGIN + 40 + LETTER * max(len(text) for _, text in legend))
    height = bottom - top + (LINE + 5) * len(legend) + MARGIN / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(plan.lab)}: {escape(plan.topology)}</title>",
        f"<style>{_STYLE}{''.join(f'.ground{n}{{fill:{c}}}' for n, c in enumerate(COLOURS)) if under else ''}</style>",
        f'<rect x="{left:.0f}" y="{top:.0f}" width="100%" height="100%" fill="#fff"/>',
    ]
    for look in ("bottleneck", ""):
        for edge in edges:
            if not look or edge.name in marks:
                lines.append(_line(look or edge.look, at[edge.a], at[edge.b]))
    for node in plan.nodes:
        if node.kind != "emulator":
            if node.name in under:
                lines.append(_circle(under[node.name], at[node.name], SIZES[node.kind] + GROUND))
            lines.append(_circle(node.kind, at[node.name], SIZES[node.kind]))
    for name, box in names.items():
        lines += _text(box, [name], ["name bold" if name in _routers(plan) else "name"])
    for name, box in told.items():
        own = words[name]
        looks = ["word bold", *["mark" if word.startswith("bottleneck") else "word" for word in own[1:]]]
        lines += _text(box, own, looks)
    for number, (what, text) in enumerate(legend):
        y = bottom + (LINE + 5) * number
        x = left + MARGIN
        if what in SIZES or what in under.values():
            lines.append(_circle(what, (x + 14, y), SYMBOL))
        elif what:
            lines.append(_line(what, (x, y), (x + 28, y)))
        lines.append(f'<text x="{x + 38 if what else x:.1f}" y="{y + 4:.1f}">{escape(text)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _routers(plan: Plan) -> set[str]:
    return {node.name for node in plan.nodes if node.kind == "router"}


def _line(look: str, a: Point, b: Point) -> str:
    return f'<line class="{look}" x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"/>'


def _circle(kind: str, at: Point, size: float) -> str:
    return f'<circle class="{kind}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{size:.0f}"/>'


def _text(box: Box, words: Sequence[str], looks: Sequence[str]) -> list[str]:
    """Lines of words in a box, on a ground of their own."""
    lines = [
        f'<rect class="back" x="{box.left:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"/>'
    ]
    for number, (word, look) in enumerate(zip(words, looks, strict=True)):
        y = box.top + LINE * (number + 0.8)
        lines.append(f'<text class="{look}" x="{box.x:.1f}" y="{y:.1f}">{escape(word)}</text>')
    return lines
