"""The path between two hosts in characters: the hosts, routers and links in a row, and what each link does.

In: a plan. Out: lines of text for a terminal. Emulated links are drawn as ══, plain ones as ───.
"""

from __future__ import annotations

from collections.abc import Iterator

from ewan.labs.plan import NetworkPath, Plan
from ewan.labs.render import table

MOST_LINKS = 4


def lines(plan: Plan) -> list[str]:
    """The path of the pair that crosses most emulated links, a line for each of these, and how many pairs there are."""
    if not plan.pairs:
        return []
    emulated = {link.name: link for link in plan.links}
    pair = max(plan.pairs, key=lambda pair: sum(hop.link in emulated for hop in pair.forward.hops))
    crossed = list(dict.fromkeys(hop.link for hop in pair.forward.hops if hop.link in emulated))
    shown = ["".join(_path(plan, pair.source, pair.forward))]
    if [hop.link for hop in pair.forward.hops] != [hop.link for hop in reversed(pair.backward.hops)]:
        crossed += [hop.link for hop in pair.backward.hops if hop.link in emulated and hop.link not in crossed]
        shown.append("".join(_path(plan, pair.sink, pair.backward)))
    rows = [row for row in table.links(plan) if row[0] in crossed]
    shown += [f"{name} {way}: {_words(row)}" for name, way, *row in rows[:MOST_LINKS]]
    if len(rows) > MOST_LINKS:
        shown.append(f"and {len(rows) - MOST_LINKS} more rows in `ewan ps {plan.lab}`")
    if len(plan.pairs) > 1:
        shown.append(f"This is one of {len(plan.pairs)} pairs of hosts; the lab has {len(plan.links)} emulated links.")
    return shown


def _path(plan: Plan, source: str, path: NetworkPath) -> Iterator[str]:
    links = {link.name: (link.a.node, link.b.node) for link in plan.links}
    wires = {wire.link: (wire.a.node, wire.b.node) for wire in plan.wires if wire.link not in links}
    yield source
    for hop in path.hops:
        a, b = links.get(hop.link) or wires[hop.link]
        yield f" ══ {hop.link} ══ " if hop.link in links else " ─── "
        yield b if hop.direction == "forward" else a


def _words(row: list[str]) -> str:
    rate, delay, buffer, queue, loss, *_ = row
    words = [rate, f"{delay} one way", f"buffer {buffer}", queue, f"loss {loss}" if loss else ""]
    return ", ".join(word for word in words if word)
