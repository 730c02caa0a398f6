"""The host's own network cards: at both ends of a cable within the lab, or with machines plugged in.

Comes in: what the description says of nodes' interfaces, and the wires between nodes; what it says of external ends.
Goes out: the plan's cards, or a DescriptionError.

A card stands for one end of a wire, and a cable for the wire: so either both ends of a wire are cards, or none. What
is between the two cards (a cable, a switch, an emulator of other make) is not the lab's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.base.source import Path
from ewan.labs.base.wording import nearest
from ewan.labs.compile.hosts import by_name
from ewan.labs.plan import Card, End, Wire
from ewan.labs.spec import Spec

_LIVE = "a lab of the virtual clock has no cards: write --runtime netns"


@dataclass(frozen=True, slots=True)
class ExternalPort:
    """An external end: a port of a router, of which the plan's card is known by name."""

    name: str
    router: str
    card: str


def external(spec: Spec, routers: Sequence[str]) -> list[ExternalPort]:
    """Those of the description; DescriptionError for one that is at no router."""
    found = []
    for name, each in spec.description.external.items():
        if each.at not in routers:
            message = f"there is no router {each.at}, {nearest(each.at, dict.fromkeys(routers))}"
            raise spec.error(("external", name, "at"), message)
        found.append(ExternalPort(name, each.at, each.interface))
    return found


def cards(
    spec: Spec, wires: Sequence[Wire], of_devices: Sequence[Card], ports: Mapping[str, End], *, virtual: bool
) -> tuple[Card, ...]:
    """All cards of the plan; `of_devices`: ports of external emulators; `ports`: of external ends, by name."""
    found: list[tuple[Path, Card]] = list(_of_nodes(spec, wires))
    for name, end in ports.items():
        card = Card(spec.description.external[name].interface, end, own_mac=True)
        found.append((("external", name, "interface"), card))
    where = {card.name: card for card in of_devices}
    for path, card in found:
        if any(card.end == other.end for other in where.values()):
            raise spec.error(
                path, f"{card.end.node}'s end of that link is the port of a device: leave it out", card.name
            )
        if virtual:
            raise spec.error(path, _LIVE, card.name)
        if card.name in where:
            raise spec.error(path, f"{card.name} is at {where[card.name].end.node} already: write another card")
        where[card.name] = card
    return tuple(where.values())


def _of_nodes(spec: Spec, wires: Sequence[Wire]) -> list[tuple[Path, Card]]:
    for kind in type(spec.description.kinds).model_fields:
        of_kind = getattr(spec.description.kinds, kind)
        if of_kind is not None and of_kind.interface is not None:
            raise spec.error(("kinds", kind, "interface"), 'a card is one node\'s: write it below "nodes:"')
    if not any(node.interface is not None for node in spec.description.nodes.values()):
        return []
    neighbours: dict[str, dict[str, End]] = {}
    for wire in wires:
        for here, there in ((wire.a, wire.b), (wire.b, wire.a)):
            neighbours.setdefault(here.node, {})[there.node] = here
    named = by_name(spec, "nodes", spec.description.nodes, list(neighbours))
    written = {name: (path, said.interface) for name, (path, said) in named.items() if said.interface is not None}
    found: dict[tuple[str, str], tuple[Path, Card]] = {}
    for name, (path, interface) in written.items():
        place: Path = (*path, "interface")
        if isinstance(interface, str):
            with_cards = [other for other in neighbours[name] if other in written]
            towards = list(neighbours[name]) if len(neighbours[name]) == 1 else with_cards
            if len(towards) != 1:
                example = f"{{{next(iter(towards or neighbours[name]))}: {interface}}}"
                raise spec.error(place, f"{name} has several neighbours: write to which, like {example}")
            interface = {towards[0]: interface}
        for neighbour, card in interface.items():
            if neighbour not in neighbours[name]:
                message = f"{name} has no neighbour {neighbour}, {nearest(neighbour, neighbours[name])}"
                raise spec.error((*place, neighbour), message, card)
            found[name, neighbour] = place, Card(card, neighbours[name][neighbour], own_mac=False)
    for (name, neighbour), (place, _) in found.items():
        if (neighbour, name) not in found:
            message = (
                f"its cable ends at {neighbour}: write the card of that end too, as "
                f'"nodes: {{{neighbour}: {{interface: {{{name}: CARD}}}}}}"'
            )
            raise spec.error(place, message)
    return list(found.values())
