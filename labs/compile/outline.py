"""The lab before anything is built: what is linked to what, with which settings, over which paths.

Comes in: a spec and facts of the host. Goes out: an `Outline`, which no later step changes, or a DescriptionError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labs.compile import cards, checks, lan, outside, vlans
from labs.compile.cards import External
from labs.compile.facts import HostFacts
from labs.compile.lan import Lan
from labs.compile.paths import Paths
from labs.compile.settings import LinkSettings, resolve
from labs.compile.vlans import Switching
from labs.spec import Spec
from labs.topologies import Layout, build


@dataclass(frozen=True, slots=True)
class Outline:
    """`links` are in the order of the layout's edges; `lans` are by the index of a switched host's edge."""

    spec: Spec
    host: HostFacts
    layout: Layout
    links: Sequence[LinkSettings]
    paths: Paths
    lans: Mapping[int, Lan]
    switching: Switching
    external: Sequence[External]

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
    return Outline(spec, host, layout, links, paths, networks, switching, cards.external(spec, layout.routers))
