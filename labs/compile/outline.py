"""The lab before anything is built: what is linked to what, with which settings, over which paths.

Comes in: a spec and facts of the host. Goes out: an `Outline`, which no later step changes, or a DescriptionError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.compile import cards, checks, lan, outside, tunnels, vlans
from ewan.labs.compile.cards import ExternalPort
from ewan.labs.compile.facts import HostFacts
from ewan.labs.compile.lan import Lan
from ewan.labs.compile.paths import Paths
from ewan.labs.compile.settings import LinkSettings, resolve
from ewan.labs.compile.vlans import VlanSegments
from ewan.labs.spec import Spec
from ewan.labs.topologies import Layout, build


@dataclass(frozen=True, slots=True)
class Outline:
    """`links` are in the order of the layout's edges; `lans` are by the index of a switched host's edge."""

    spec: Spec
    host: HostFacts
    layout: Layout
    links: Sequence[LinkSettings]
    paths: Paths
    lans: Mapping[int, Lan]
    switching: VlanSegments
    external: Sequence[ExternalPort]
    tunnels: Sequence[tunnels.NodeTunnel]

    @property
    def networks(self) -> list[Lan]:
        """Each switched network once."""
        return list(dict.fromkeys(self.lans.values()))


def outline(spec: Spec, host: HostFacts) -> Outline:
    """The topology laid out, its links' settings resolved, its paths found."""
    layout = build(spec.description.topology)
    checks.check_layout(spec, layout)
    switching = vlans.of(spec, layout)
    links = resolve(spec, layout.edges)
    checks.check_mtus(spec, layout, links)
    outside.check_cards(spec, links)
    checks.check_trunks(spec, layout, links)
    paths = Paths(spec, layout, links, switching)
    networks = lan.of(spec, layout, paths.uplink, links)
    external = cards.external(spec, layout.routers)
    with_mtus = tunnels.with_mtus(spec, links, paths, paths.tunnels)
    return Outline(spec, host, layout, links, paths, networks, switching, external, with_mtus)
