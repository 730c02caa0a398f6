"""The VLANs of a plan's wires in words.

Comes in: a plan. Goes out: for each link of a switch with VLANs a few words, `VLAN 10` or `trunk 10, 20`, which is what
the wire's end at the switch has.
"""

from __future__ import annotations

from ewan.labs.plan import Plan, Vlans


def of_links(plan: Plan) -> dict[str, str]:
    """By the link's name."""
    known = {
        (node.name, port.name): port.vlans
        for node in plan.nodes
        if node.kind == "switch"
        for port in node.interfaces
        if port.vlans is not None
    }
    ends = [(wire.link, end) for wire in plan.wires for end in (wire.a, wire.b)]
    return {link: words(known[end.node, end.interface]) for link, end in ends if (end.node, end.interface) in known}


def words(vlans: Vlans) -> str:
    """`VLAN 10`, `trunk 10, 20`, `trunk 20, untagged 10`."""
    if not vlans.tagged:
        return f"VLAN {vlans.untagged}"
    tagged = f"trunk {', '.join(map(str, vlans.tagged))}"
    return tagged if vlans.untagged is None else f"{tagged}, untagged {vlans.untagged}"
