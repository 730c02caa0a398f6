"""Switched access networks: the hosts of a router behind one switch, all in one subnet.

Comes in: a layout, its links' settings, and what the description says of the switch. Goes out: for each link of a host
that is switched its `Lan`: the switch's name, and the settings of the port that leads to the router, where all hosts
of the network meet. The links of the hosts themselves stay what they are: network cards, or emulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.base.source import Path
from ewan.labs.base.values import LONGEST_NAME
from ewan.labs.compile.settings import LinkSettings
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.link.settings import DirectionSettings, settings
from ewan.labs.spec import Spec
from ewan.labs.topologies import Layout

PREFIX = "sw-"
_NOT_HOSTS = 3  # the network's own address, the router's, the one for broadcasts
_NUMBER = 4  # addresses in a link's /30


@dataclass(frozen=True, slots=True, eq=False)
class Lan:
    """One router's hosts behind a switch; `edges` are the indices of their links, in the layout's order."""

    router: str
    switch: str
    edges: tuple[int, ...]
    port: DirectionSettings
    """The link between switch and router, the same in both directions."""

    @property
    def numbers(self) -> int:
        """The links whose room in the address space it takes: a power of two, at which it is aligned."""
        return numbers_of(len(self.edges))

    @property
    def lengths(self) -> tuple[int, int]:
        """Prefix lengths, IPv4 and IPv6."""
        return lengths_of(len(self.edges))


def numbers_of(hosts: int) -> int:
    """The number of links whose address space a network of this many hosts takes: a power of two."""
    return _power(hosts + _NOT_HOSTS) // _NUMBER


def lengths_of(hosts: int) -> tuple[int, int]:
    """The prefix lengths of a network of so many hosts, IPv4 and IPv6."""
    return 33 - _power(hosts + _NOT_HOSTS).bit_length(), 64


def _power(least: int) -> int:
    return max(_NUMBER, 1 << (least - 1).bit_length())


def of(spec: Spec, layout: Layout, uplink: Mapping[str, int], links: Sequence[LinkSettings]) -> dict[int, Lan]:
    """The networks by link; `uplink` is the link of each host. Errors: nothing to switch, names that cannot be."""
    wanted = spec.description.access.switch
    if wanted is None:
        return {}
    path: Path = ("access", "switch")
    edges: dict[str, list[int]] = {}
    several = Counter(end for edge in layout.edges for end in (edge.a, edge.b) if end in uplink)
    for host, index in uplink.items():
        edge = layout.edges[index]
        if several[host] > 1:
            raise spec.error(path, f"{host} has several links, which lead to routers: leave it out", wanted.kind)
        if edge.role == "access":
            edges.setdefault(edge.b if edge.a == host else edge.a, []).append(index)
    if not edges:
        message = f"a {spec.description.topology.kind} has no access links: leave it out"
        raise spec.error(path, message, wanted.kind)
    taken = {*layout.hosts, *layout.routers, *(edge.name for edge in layout.edges)}
    networks: dict[int, Lan] = {}
    for router in (router for router in layout.routers if router in edges):
        name = PREFIX + router
        if name in taken:
            raise spec.error(path, f"the switch of {router} is {name}, as something else is: write another name there")
        if len(name) > LONGEST_NAME:
            most = LONGEST_NAME - len(PREFIX)
            raise spec.error(path, f"{router} is too long a name for one with a switch: write at most {most} letters")
        found = tuple(sorted(edges[router]))
        lan = Lan(router, name, found, _port(spec, [links[index] for index in found]))
        networks |= dict.fromkeys(found, lan)
    return networks


def _port(spec: Spec, hosts: Sequence[LinkSettings]) -> DirectionSettings:
    """The settings of the port to the router. Keys that are not written are those of the hosts' ports, as in a switch
    of equal ports."""
    access = spec.description.access
    assert access.switch is not None
    own = access.switch.choice
    fastest = max(way.rate for link in hosts for way in (link.forward, link.backward))
    card = DirectionKeys.model_construct(framing=access.framing, buffer=access.buffer)
    port = DirectionKeys.model_construct(**{key: getattr(own, key) for key in own.model_fields_set})
    path: Path = ("access", "switch", "ovs")
    return settings(path, fastest, [(("access",), card), (path, port)])
