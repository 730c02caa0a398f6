"""The keys of a whole description."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from ewan.labs.base.model import Model
from ewan.labs.base.values import Count, Name
from ewan.labs.spec.fields.card import ExternalKeys, named
from ewan.labs.spec.fields.host import Host
from ewan.labs.spec.fields.link import AccessLink, LinkKeys, SingleLink
from ewan.labs.spec.fields.node import Kinds, NodeKeys
from ewan.labs.spec.fields.topology import Topology
from ewan.labs.spec.fields.tunnel import TunnelKeys
from ewan.labs.spec.values import DitherText, Ip, KernelText, Mtu, RttText, Seed

Cpus = tuple[Annotated[int, Count(0, 4095)], ...]
Pixel = Annotated[int, Count(-100_000, 100_000)]


class CpuPlan(Model):
    """The CPUs that serve links, and the CPUs that run hosts and routers."""

    spin: Cpus | None = Field(None, description="CPUs that serve links and nothing else; the last one if absent")
    hosts: Cpus | None = Field(None, description="CPUs for end hosts and routers; the others if absent")
    idle: Literal["sleep", "spin"] = Field(
        "sleep",
        description="what links do while nothing comes: `sleep` takes no CPU, and a link of short delay spins all the "
        "same; `spin` keeps the CPU busy, so that nothing has to wake up",
    )


class ContainerPlan(Model):
    """Settings that only a lab of containers has."""

    management: bool = Field(
        False,
        description="the engine's network at each node's eth0, and the lab's own interfaces from eth1 on; false if "
        "absent, as whatever else crosses a node costs accuracy",
    )
    dashboards: bool = Field(
        False, description="Prometheus and Grafana beside the nodes; needs `management`, which it turns on"
    )
    ovs_bridge: bool = Field(
        False,
        alias="ovs-bridge",
        description="switches are bridges of the host's Open vSwitch (containerlab's kind ovs-bridge), made by hand",
    )


class RouteKeys(Model):
    """A route of a router."""

    at: Name = Field(description="the router", examples=["hub"])
    to: tuple[Name, ...] = Field(
        description="packets to this host, or to this router and all its hosts; or a list of them. What is written of "
        "a host comes before what is written of its router",
        examples=["home", "[left1, left2]"],
    )
    over: Name = Field(description="leave by this link, which leads to another router", examples=["satellite"])

    @field_validator("to", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        """A single name stands for a list with one element."""
        return [value] if isinstance(value, str) else value


class Description(Model):
    """A whole lab description, as it was written: no defaults applied."""

    topology: Topology = Field(description="what is linked to what", examples=["{dumbbell: {pairs: 2}}"])
    name: Name | None = Field(None, description="names everything the lab owns; the file's or topology's if absent")
    rtt: RttText | None = Field(
        None,
        description="base RTT (propagation, both ways) of the longest host pair, shared out over the wide-area links "
        "without a delay of their own; in a dumbbell also one for each pair, by access delay; 100ms if absent "
        "and no link has a delay",
    )
    wan: LinkKeys = Field(LinkKeys(), description="settings of every wide-area link", examples=["{rate: 1Gbit/s}"])
    access: AccessLink = Field(AccessLink(), description="settings of every access link; `forward` goes from the host")
    links: dict[str, SingleLink] = Field(
        {}, description="settings of single links by name", examples=["{core: {loss: 1%}}"]
    )
    hosts: dict[str, Host] = Field(
        {},
        description="settings of hosts by name, or of several: `left[1-4]`",
        examples=["{left1: {pacing: {psp: 400Mbit/s}}, right1: {stack: windows-xp}}"],
    )
    nodes: dict[str, NodeKeys] = Field(
        {},
        description="what nodes are made of, by name, or several: `left[1-4]`",
        examples=["{left1: {image: my/app:1}, r1: {startup: frr.conf}}"],
    )
    kinds: Kinds = Field(
        Kinds(), description="what all nodes of a kind are made of", examples=["{router: {image: my/frr:10}}"]
    )
    external: dict[Name, ExternalKeys] = Field(
        {},
        description="cards of this machine into which machines are plugged that are ends of the lab: one, a list, or "
        "by name; they get addresses and routes from the lab (live, only `netns`, docs/how-to/labs/hardware.md)",
        examples=["{at: r1, interface: eth1}"],
    )
    mtu: Mtu = Field(1500, description="largest IP packet in bytes; 1500 if absent")
    ip: Ip = Field("dual", description="IPv4, IPv6 or both; dual if absent")
    seed: Seed = Field(1, description="of everything random; 1 if absent")
    emulator: Literal["auto", "user", "kernel", "tbf"] = Field(
        "auto",
        description="what emulates links: user, our own model, in a process in the live clock and in the kernel in the "
        "virtual one; kernel, netem with psp and the queue below it; tbf, a token bucket in place of psp; auto takes "
        "user",
    )
    kernel: KernelText | None = Field(
        None,
        description="virtual clock: the kernel of all nodes, by the name that `ewan kernel add` gave it; 6.12, which "
        "every clone builds, if absent",
        examples=["bbr3"],
    )
    dither: DitherText = Field(
        "auto",
        description="virtual clock: each packet of a host waits for a seeded time, uniform from 0 to this, so that "
        "exact timing does not synchronise flows; auto is the time of the largest packet at the bottleneck of the "
        "host's pairs; 0 for none",
    )
    routing: Literal["static", "ospf", "bgp", "isis"] = Field(
        "static",
        description="static: shortest delay, fixed; ospf, isis: FRRouting, with costs from the delays; bgp: FRRouting, "
        "each router an autonomous system of its own",
    )
    routes: tuple[RouteKeys, ...] = Field(
        (),
        description="routes in place of those of the shortest delay, of `routing: static`: a way back by other links, "
        "say; none if absent",
        examples=["[{at: hub, to: home, over: satellite}]"],
    )
    tunnels: tuple[TunnelKeys, ...] = Field(
        (),
        description="tunnels between two nodes (docs/how-to/labs/tunnels.md); none if absent",
        examples=["[{name: vpn, between: [branch, hub], kind: wireguard}]"],
    )
    containers: ContainerPlan = Field(ContainerPlan(), description="what only a lab of containers has")
    cpus: CpuPlan = Field(CpuPlan(), description="placement on CPUs, in the live clock; by the compiler if absent")
    layout: dict[str, tuple[Pixel, Pixel]] = Field(
        {},
        description="where nodes are drawn in Studio, in pixels, y downwards; nothing of the lab depends on it",
        examples=["{left1: [0, 80], r1: [200, 80]}"],
    )

    @field_validator("external", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """One without a name, and a list, stand for a mapping by name."""
        return named(value)
