"""The host's own network cards in a plan.

In: a plan. Out: which of them are ends of cables within the lab, and which have machines plugged into them.
"""

from __future__ import annotations

from ewan.labs.plan import Card, Plan, tunnels_of


def external(plan: Plan) -> list[Card]:
    """The cards at whose other ends are machines that are not the lab's."""
    return [card for card in plan.cards if card.own_mac]


def refusal(plan: Plan) -> str | None:
    """One line on a plan that only namespaces of this machine can be made of; None where any runtime can."""
    for card in plan.cards:
        return f"card {card.name} of {card.end.node} can only be in a lab of network namespaces: write --runtime netns"
    for tunnel in tunnels_of(plan):
        where = "a lab of network namespaces, or in the virtual clock"
        return f"tunnel {tunnel} can only be in {where}: write --runtime netns"
    return None
