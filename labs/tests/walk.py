"""Walks a plan as a packet would: longest prefix, neighbour, wire, emulator, switch; any break is an AssertionError."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from ewan.labs.link.delay import nominal_ns
from ewan.labs.plan import Hop, Interface, Link, Node, Plan


@dataclass(frozen=True)
class Network:
    plan: Plan

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.plan.nodes}

    @cached_property
    def ports(self) -> dict[tuple[str, str], Interface]:
        return {(node.name, port.name): port for node in self.plan.nodes for port in node.interfaces}

    @cached_property
    def far_end(self) -> dict[tuple[str, str], tuple[str, str]]:
        ends = [((wire.a.node, wire.a.interface), (wire.b.node, wire.b.interface)) for wire in self.plan.wires]
        return dict(ends) | {b: a for a, b in ends}

    @cached_property
    def links(self) -> dict[str, Link]:
        return {link.node: link for link in self.plan.links}

    def addresses(self, node: str, version: int) -> list[Any]:
        interfaces = [ipaddress.ip_interface(a) for port in self.nodes[node].interfaces for a in port.addresses]
        return [interface.ip for interface in interfaces if interface.version == version]

    def walk(self, source: str, address: Any) -> tuple[list[str], int]:
        """The nodes that a packet passes, emulators and switches among them, and the sum of delays in ns."""
        here, passed, delay = source, [source], 0
        for _ in range(1000):
            if address in self.addresses(here, address.version):
                return passed, delay
            port, hop = self.next_hop(here, address)
            leaves, tag = self.on_wire(port)
            onward = self.far_end[here, leaves]
            known = {n.address: n.mac for n in port.neighbours}.get(str(hop)) or self.asked(hop)
            while self.nodes[onward[0]].kind in ("emulator", "switch"):
                passed.append(onward[0])
                link = self.links.get(onward[0])
                if link is None:
                    leaves, tag = self.switched(*onward, known, tag)
                    onward = self.far_end[onward[0], leaves]
                    continue
                forward = onward[1] == link.port_a
                assert onward[1] in (link.port_a, link.port_b)
                delay += nominal_ns((link.forward if forward else link.backward).delay)
                onward = self.far_end[link.node, link.port_b if forward else link.port_a]
            there = self.taken(*onward, tag)
            assert known == there.mac
            assert str(hop) in [a.split("/")[0] for a in there.addresses]
            assert port.mtu == there.mtu
            here = onward[0]
            passed.append(here)
        raise AssertionError(f"{address} is never reached from {source}: {passed[:20]}")

    def hops(self, passed: list[str]) -> tuple[Hop, ...]:
        """The links, with directions, between the nodes that a walk passed."""
        between = {(wire.a.node, wire.b.node): wire.link for wire in self.plan.wires}
        found = []
        for here, there in pairwise(passed):
            if here in self.links:
                continue  # the second half of an emulated link
            if there in self.links:
                found.append(Hop(there, "forward" if self.links[there].a.node == here else "backward"))
            elif (here, there) in between:
                found.append(Hop(between[here, there], "forward"))
            else:
                found.append(Hop(between[there, here], "backward"))
        return tuple(found)

    def asked(self, address: Any) -> str:
        """What address resolution finds: only hosts of one switch ask each other."""
        (found,) = [p.mac for (_, _), p in self.ports.items() if str(address) in [a.split("/")[0] for a in p.addresses]]
        return found

    @staticmethod
    def on_wire(port: Interface) -> tuple[str, int | None]:
        """The interface by which packets leave, and their tag."""
        if port.vlans is not None and port.vlans.parent is not None:
            (vlan,) = port.vlans.tagged
            return port.vlans.parent, vlan
        return port.name, None

    def taken(self, node: str, interface: str, tag: int | None) -> Interface:
        """The interface to which a frame with this tag, or none, belongs."""
        (found,) = [port for port in self.nodes[node].interfaces if self.on_wire(port) == (interface, tag)]
        return found

    def switched(self, switch: str, interface: str, mac: str, tag: int | None) -> tuple[str, int | None]:
        """The port that a switch sends a frame to, and the frame's tag there."""
        ports = self.nodes[switch].interfaces
        if ports[0].vlans is None:
            return self.forwards(switch, mac), tag
        (flows,) = [text for service in self.nodes[switch].services for text in service.files.values()]
        number = 1 + [port.name for port in ports].index(interface)
        seen = "vlan_tci=0x0000/0x0fff" if tag is None else f"dl_vlan={tag}"
        (admitted,) = [line for line in flows.splitlines() if line.startswith(f"in_port={number},{seen},")]
        vlan = int(admitted.split("load:")[1].split("-")[0])
        (known,) = [line for line in flows.splitlines() if line.startswith(f"table=1,reg0={vlan},dl_dst={mac},")]
        out = ports[int(known.split("output:")[1]) - 1]
        assert out.vlans is not None and out.name != interface
        assert ("strip_vlan" in known) == (vlan == out.vlans.untagged)
        assert (f"mod_vlan_vid:{vlan}," in known) == (vlan in out.vlans.tagged)
        return out.name, vlan if vlan in out.vlans.tagged else None

    def forwards(self, switch: str, mac: str) -> str:
        """The port that a switch's flows send a frame to."""
        (flows,) = [text for service in self.nodes[switch].services for text in service.files.values()]
        (port,) = [line.split("output:")[1] for line in flows.splitlines() if f"dl_dst={mac}," in line]
        return self.nodes[switch].interfaces[int(port) - 1].name

    def next_hop(self, node: str, address: Any) -> tuple[Interface, Any]:
        """The interface and the next address, by longest prefix; what is connected is its own next hop."""
        best: tuple[int, Interface, Any] | None = None
        for port in self.nodes[node].interfaces:
            for text in port.addresses:
                network = ipaddress.ip_interface(text).network
                if address in network and (best is None or network.prefixlen > best[0]):
                    best = network.prefixlen, port, address
        for route in (*self.nodes[node].routes, *self.nodes[node].learned_routes):
            network = ipaddress.ip_network(route.to)
            if address in network and (best is None or network.prefixlen > best[0]):
                best = network.prefixlen, self.ports[node, route.interface], ipaddress.ip_address(route.via)
        assert best is not None, f"{node} has no route to {address}"
        return best[1], best[2]
