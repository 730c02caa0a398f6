"""The share of each machine in a plan: a plan of its own, whose wires to other machines are tunnels. Pure.

In: the plan of the whole lab, the places of its nodes, the resources of each machine. Out: the shares, and the whole
plan with the spinners of all of them, numbered through the machines in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.extras.machines.placement import MachinePlacement
from ewan.labs.base.codec import Struct, replace
from ewan.labs.compile.placement import share_out
from ewan.labs.plan import End, Plan, Spinner, Tunnel

PORT = 14789
"""UDP. Not VXLAN's own 4789, which overlays of others use; containerlab takes the same."""
VNIS = 1 << 24


@dataclass(frozen=True, slots=True)
class ShareHost:
    """The resources of a machine: CPUs for the lab, and its address at the network between the machines."""

    name: str
    cpus: tuple[int, ...]
    address: str


class TunnelWire(Struct):
    """A wire from one machine to another: `near` is at the link's emulator, `far` at one of the link's ends.

    `towards_far`: the direction of the link whose packets cross it from near to far; the other one's cross it back.
    """

    link: str
    near: End
    far: End
    near_machine: str
    far_machine: str
    towards_far: str


@dataclass(frozen=True, slots=True)
class Shares:
    """`whole` has the spinners of all machines; `of`: machine → its share; `first_spinner`: its first one's number."""

    whole: Plan
    of: Mapping[str, Plan]
    first_spinner: Mapping[str, int]
    stretched: tuple[TunnelWire, ...]


def machine_of_spinner(first_spinner: Mapping[str, int], number: int) -> tuple[str, int]:
    """Machine and the number there of a spinner of the whole plan; `first_spinner` as of `Shares`."""
    name, first = max(((name, at) for name, at in first_spinner.items() if at <= number), key=lambda found: found[1])
    return name, number - first


def stretched(plan: Plan, placement: MachinePlacement) -> tuple[TunnelWire, ...]:
    """The wires that cross from machine to machine, in the plan's order."""
    links = {link.name: link for link in plan.links}
    found = []
    for wire in plan.wires:
        here, there = placement.machine_of[wire.a.node], placement.machine_of[wire.b.node]
        if here == there:
            continue
        link = links[wire.link]
        near_is_a = wire.a.node == link.node
        near, far = (wire.a, wire.b) if near_is_a else (wire.b, wire.a)
        found.append(
            TunnelWire(
                link.name,
                near,
                far,
                placement.machine_of[near.node],
                placement.machine_of[far.node],
                "forward" if far == link.b else "backward",
            )
        )
    return tuple(found)


def split(
    plan: Plan,
    placement: MachinePlacement,
    hosts: Sequence[ShareHost],
    first_vni: int,
    taken_ns: Mapping[tuple[str, str], int],
) -> Shares:
    """The shares of all machines that have nodes.

    `first_vni`: tunnels are numbered from it on; `taken_ns`: (from, to) → what a tunnel between two machines takes, one
    way, which the links over it leave out.
    """
    addresses = {host.name: host.address for host in hosts}
    crossing = stretched(plan, placement)
    tunnels: dict[str, list[Tunnel]] = {host.name: [] for host in hosts}
    for number, each in enumerate(crossing):
        vni = (first_vni + number) % (VNIS - 1) + 1
        there = taken_ns[each.near_machine, each.far_machine]
        back = taken_ns[each.far_machine, each.near_machine]
        forward, backward = (there, back) if each.towards_far == "forward" else (back, there)
        ends = ((each.near, each.near_machine, each.far_machine), (each.far, each.far_machine, each.near_machine))
        for end, here, other in ends:
            made = Tunnel(each.link, end, vni, addresses[here], addresses[other], PORT, forward, backward)
            tunnels[here].append(made)
    shares: dict[str, Plan] = {}
    first: dict[str, int] = {}
    spinners: list[Spinner] = []
    for host in hosts:
        own = placement.nodes_on(host.name)
        if not own:
            continue
        spun = [link.name for link in plan.links if link.backend == "user" and link.node in own]
        local, host_cpus = share_out(host.cpus, spun)
        if local:
            first[host.name] = len(spinners)
        spinners += local
        shares[host.name] = replace(
            plan,
            nodes=tuple(node for node in plan.nodes if node.name in own),
            wires=tuple(wire for wire in plan.wires if {wire.a.node, wire.b.node} <= own),
            links=tuple(link for link in plan.links if link.node in own),
            spinners=local,
            pairs=(),
            host_cpus=host_cpus,
            tunnels=tuple(tunnels[host.name]),
        )
    whole = replace(plan, spinners=tuple(spinners), host_cpus=())
    return Shares(whole, shares, first, crossing)
