"""The placement of a lab's nodes on machines. Pure.

In: a plan, the machines with their CPUs, and the user's choices. Out: a machine for each node. Only wide-area links are
cut, at one of the two wires beside their emulators: so a host is with its router, and with the hosts of its switch. The
parts that are left are shared out by CPUs, neighbours together; emulators of links that are cut go where fewer links
are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.base.errors import UserError
from ewan.labs.plan import Link, Plan
from ewan.labs.spec.patterns import PatternError, members

CUTTABLE = ("user",)
"""Back ends of links that may stretch: a link of the kernel's parts cannot leave out what a tunnel takes."""
WORK = {"host": 2, "router": 1, "switch": 1, "emulator": 2}
"""The cost of a node for its machine, relative to others."""
ROOM = 1.15
"""A machine may have so much more than its share of the work, where that saves tunnels."""
PASSES = 8


class PlacementError(UserError):
    """A choice of the user's that cannot be fulfilled."""


@dataclass(frozen=True, slots=True)
class MachinePlacement:
    """`machine_of`: of each node; `stretched`: the links that cross from machine to machine, in the plan's order."""

    machine_of: Mapping[str, str]
    stretched: tuple[str, ...]

    def nodes_on(self, machine: str) -> frozenset[str]:
        """The nodes of one machine."""
        return frozenset(node for node, where in self.machine_of.items() if where == machine)


def cuttable(link: Link) -> bool:
    """Return whether a link may lie between two machines."""
    return link.role == "wan" and link.backend in CUTTABLE


def place(plan: Plan, cpus: Mapping[str, int], decided: Mapping[str, str]) -> MachinePlacement:
    """`cpus`: how many each machine has; `decided`: pattern of nodes → machine. Raises PlacementError."""
    cut = {link.name: link for link in plan.links if cuttable(link)}
    emulators = {link.node for link in cut.values()}
    parts = _parts(plan, cut)
    part_of = {node: number for number, part in enumerate(parts) for node in part}
    fixed, free = _decided(plan, parts, part_of, emulators, decided)
    between: Counter[tuple[int, int]] = Counter()
    for link in cut.values():
        a, b = sorted((part_of[link.a.node], part_of[link.b.node]))
        if a != b:
            between[a, b] += 1
    kinds = {node.name: node.kind for node in plan.nodes}
    work = [sum(WORK[kinds[node]] for node in part) for part in parts]
    where = _share_out(work, between, cpus, fixed)
    machine_of = {node: where[number] for node, number in part_of.items()}
    _place_emulators(plan, cut, machine_of, cpus, free)
    stretched = tuple(name for name, link in cut.items() if machine_of[link.a.node] != machine_of[link.b.node])
    # An emulator that a person put on a third machine has tunnels at both sides.
    third = [
        name
        for name in cut
        if machine_of[cut[name].node] not in {machine_of[e.node] for e in (cut[name].a, cut[name].b)}
    ]
    if third:
        raise PlacementError(
            f"placement: {third[0]}'s emulator is on neither machine of its ends: put it on one of them"
        )
    return MachinePlacement({node.name: machine_of[node.name] for node in plan.nodes}, stretched)


def _parts(plan: Plan, cut: Mapping[str, Link]) -> list[list[str]]:
    """The nodes that nothing takes apart, in the plan's order; emulators of links that may be cut are in none."""
    emulators = {link.node for link in cut.values()}
    leader = {node.name: node.name for node in plan.nodes if node.name not in emulators}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for wire in plan.wires:
        if wire.link not in cut:
            a, b = find(wire.a.node), find(wire.b.node)
            leader[b] = a
    parts: dict[str, list[str]] = {}
    for name in leader:
        parts.setdefault(find(name), []).append(name)
    return list(parts.values())


def _decided(
    plan: Plan,
    parts: Sequence[Sequence[str]],
    part_of: Mapping[str, int],
    emulators: Iterable[str],
    decided: Mapping[str, str],
) -> tuple[dict[int, str], dict[str, str]]:
    """The machines that the user chose, for parts and for emulators."""
    fixed: dict[int, str] = {}
    by: dict[int, str] = {}
    free: dict[str, str] = {}
    emulating = frozenset(emulators)
    for pattern, machine in decided.items():
        try:
            names = members(pattern, {}, [node.name for node in plan.nodes])
        except PatternError as error:
            raise PlacementError(f'placement "{pattern}": {error}') from None
        for name in names:
            if name in emulating:
                free[name] = machine
                continue
            number = part_of[name]
            if fixed.setdefault(number, machine) != machine:
                raise PlacementError(
                    f"placement: {name} on {machine} and {by[number]} on {fixed[number]}, and no wide-area link of our "
                    f"own back end is between them: put {len(parts[number])} nodes ({', '.join(parts[number][:4])}, …) "
                    "on one machine"
                )
            by[number] = name
    return fixed, free


def _share_out(
    work: Sequence[int], between: Mapping[tuple[int, int], int], cpus: Mapping[str, int], fixed: Mapping[int, str]
) -> list[str]:
    """A machine for each part: neighbours together until a machine has its share, then the choice that saves
    tunnels."""
    machines = list(cpus)
    total = sum(work)
    most = {name: total * count / sum(cpus.values()) for name, count in cpus.items()}
    neighbours: dict[int, list[int]] = {number: [] for number in range(len(work))}
    for (a, b), _ in between.items():
        neighbours[a].append(b)
        neighbours[b].append(a)
    where: dict[int, str] = dict(fixed)
    load = {name: float(sum(work[number] for number, at in fixed.items() if at == name)) for name in machines}
    turn = 0
    for number in _walk(neighbours, fixed):
        while turn < len(machines) - 1 and load[machines[turn]] > max(0, most[machines[turn]] - work[number] / 2):
            turn += 1
        where[number] = machines[turn]
        load[machines[turn]] += work[number]
    for _ in range(PASSES):
        moved = False
        for number in range(len(work)):
            if number in fixed:
                continue
            here = where[number]
            tunnels = {
                name: sum(
                    between[min(number, other), max(number, other)]
                    for other in neighbours[number]
                    if where[other] != name
                )
                for name in machines
            }
            room = [name for name in machines if load[name] + work[number] <= ROOM * most[name]]
            best = min(room, key=lambda name: (tunnels[name], load[name] / most[name]), default=here)
            if tunnels[best] < tunnels[here]:
                load[here] -= work[number]
                load[best] += work[number]
                where[number], moved = best, True
        if not moved:
            break
    return [where[number] for number in range(len(work))]


def _walk(neighbours: Mapping[int, Sequence[int]], fixed: Mapping[int, str]) -> list[int]:
    """The parts that are not fixed, breadth first, so that neighbours come together."""
    order: list[int] = []
    seen = set(fixed)
    for first in neighbours:
        waiting = [] if first in seen else [first]
        seen.add(first)
        while waiting:
            number = waiting.pop(0)
            order.append(number)
            for other in neighbours[number]:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return order


def _place_emulators(
    plan: Plan, cut: Mapping[str, Link], machine_of: dict[str, str], cpus: Mapping[str, int], chosen: Mapping[str, str]
) -> None:
    """Beside an end of their links: where that is one of two machines, on the one with fewer links for its CPUs."""
    links = Counter(machine_of[link.node] for link in plan.links if link.name not in cut and link.node)
    crossing = []
    for link in cut.values():
        a, b = machine_of[link.a.node], machine_of[link.b.node]
        if a != b and link.node not in chosen:
            crossing.append((link, a, b))
            continue
        machine_of[link.node] = chosen.get(link.node, a)
        links[machine_of[link.node]] += 1
    for link, a, b in crossing:
        machine_of[link.node] = min((a, b), key=lambda name: links[name] / cpus[name])
        links[machine_of[link.node]] += 1
