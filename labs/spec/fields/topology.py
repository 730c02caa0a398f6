"""The keys of topologies: what is linked to what, in numbers of hosts, routers and links."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from ewan.labs.base.model import Model, OneOf
from ewan.labs.base.values import Count, Name
from ewan.labs.spec.fields.link import GraphLink

Hosts = Annotated[tuple[Name, ...], Field(min_length=2)]


class Graph(Model):
    """Any hosts, switches, routers and links."""

    hosts: Hosts = Field(
        description="end hosts, each with one link to a router or a switch, or with several to routers",
        examples=["[a, b]"],
    )
    routers: tuple[Name, ...] = Field(description="what the hosts hang on", examples=["[r1]"])
    switches: tuple[Name, ...] = Field(
        (),
        description="Open vSwitches, which forward between hosts and routers of one VLAN; none if absent",
        examples=["[s1, s2]"],
    )
    links: tuple[GraphLink, ...] = Field(description="each with the settings of a link")
    pairs: tuple[tuple[Name, Name], ...] | None = Field(
        None, description="hosts that are meant to talk; each host with the next one if absent", examples=["[[a, b]]"]
    )


def _size(default: int, description: str, least: int = 1, most: int = 20_000) -> Any:
    return Field(default, description=f"{description}; {default} if absent", examples=[default])


class Dumbbell(Model):
    """Two routers with hosts on both sides; the link between them is the bottleneck."""

    pairs: Annotated[int, Count(1, 20_000)] = _size(1, "hosts left1… send to right1… over the link `core`")
    reverse_pairs: Annotated[int, Count(0, 20_000)] = _size(0, "further pairs that send from right to left")


class ParkingLot(Model):
    """Routers in a row; one pair crosses all links between them, others one link each."""

    hops: Annotated[int, Count(1, 200)] = _size(3, "wide-area links hop1… that left1 → right1 crosses")
    cross_pairs: Annotated[int, Count(0, 100)] = _size(1, "pairs in1-1 → out1-1 that cross one hop only, for each hop")


class Star(Model):
    """Hosts around one router, each on a wide-area link of its own."""

    arms: Annotated[int, Count(2, 20_000)] = _size(3, "hosts, each on its own wide-area link arm1… to the router hub")


class Chain(Model):
    """Routers in a row, with hosts at both ends."""

    hops: Annotated[int, Count(1, 200)] = _size(3, "wide-area links hop1… one after the other")
    pairs: Annotated[int, Count(1, 20_000)] = _size(1, "hosts left1… send to right1… over all of them")


class Ring(Model):
    """Routers in a ring, a host on each."""

    routers: Annotated[int, Count(3, 400)] = _size(4, "routers in a ring, a host on each")


class Mesh(Model):
    """Routers that are all linked to each other, a host on each."""

    routers: Annotated[int, Count(2, 64)] = _size(4, "routers, each linked to each, a host on each")


class Fishbone(Model):
    """Routers in a row, each with a host on either side."""

    ribs: Annotated[int, Count(1, 200)] = _size(
        3, "routers of the spine, each with the hosts up1… and down1… on wide-area ribs"
    )


class FourDomain(Model):
    """Four sites of hosts around one core router."""

    hosts: Annotated[int, Count(1, 5000)] = _size(1, "hosts in each of the sites a, b, c, d around the router core")


class Grid(Model):
    """Routers in rows and columns, a host on each."""

    rows: Annotated[int, Count(1, 20)] = _size(3, "rows of routers, a host on each")
    columns: Annotated[int, Count(2, 20)] = _size(3, "columns of routers")


class Topology(OneOf):
    """The topology, with its settings."""

    what: ClassVar[str] = "topology"
    dumbbell: Dumbbell | None = Field(None, description="two routers, hosts on both sides, one bottleneck")
    parking_lot: ParkingLot | None = Field(None, alias="parking-lot", description="several bottlenecks in a row")
    star: Star | None = Field(None, description="hosts around one router")
    chain: Chain | None = Field(None, description="links in a row without cross traffic")
    ring: Ring | None = Field(None, description="routers in a ring")
    mesh: Mesh | None = Field(None, description="each router linked to each")
    fishbone: Fishbone | None = Field(None, description="a spine with a rib on both sides of each router")
    four_domain: FourDomain | None = Field(None, alias="four-domain", description="four sites around a core")
    grid: Grid | None = Field(None, description="routers in rows and columns")
    graph: Graph | None = Field(None, description="any hosts, switches, routers and links")

    @classmethod
    def parameters(cls, kind: str) -> list[str]:
        """The settings of one topology that are plain numbers."""
        return [] if kind == "graph" else cls.keys_at([kind])[0]

    @classmethod
    def all_parameters(cls) -> set[str]:
        """The settings of all topologies that are plain numbers."""
        return {word for kind in cls.words() for word in cls.parameters(kind)}
