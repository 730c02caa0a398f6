"""The settings of all links, put together from all the places where a description may say them.

Comes in: a spec and the edges of its topology. Goes out: for each direction what holds, and where it was written. The
nearer to the link wins: wan or access, its direction, the link itself, the link's direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ewan.labs.base.source import Path
from ewan.labs.base.units import Rate
from ewan.labs.link.settings import DirectionSettings, Layer, settings
from ewan.labs.spec import Spec, fields
from ewan.labs.topologies import Edge

WAN_RATE, ACCESS_RATE = Rate.parse("1Gbit/s"), Rate.parse("10Gbit/s")


@dataclass(frozen=True, slots=True, eq=False)
class LinkSettings:
    """Both directions of a link; `mtu` is a link's own or the lab's, written at `mtu_path`."""

    forward: DirectionSettings
    backward: DirectionSettings
    mtu: int
    mtu_path: Path
    hardware: fields.HardwareKeys | None = None
    """The external emulator that it is; written at `hardware_path`."""
    hardware_path: Path = ()

    @property
    def rtt_ns(self) -> int | None:
        """Both ways, if both were written."""
        there, back = self.forward.delay_ns, self.backward.delay_ns
        return None if there is None or back is None else there + back

    @property
    def impaired(self) -> bool:
        """Return whether the link needs an emulator: a network card has only a rate and a drop-tail queue."""
        return self.forward.impaired or self.backward.impaired


def resolve(spec: Spec, edges: Sequence[Edge]) -> list[LinkSettings]:
    """The settings of every edge; edges about which nothing special was written share one object.

    Access links are no bottleneck unless the description says so: without a rate of their own, they are as fast as the
    fastest wide-area link, and `ACCESS_RATE` at least.
    """
    common: dict[str, LinkSettings] = {}
    found = []
    for edge in edges:
        special = spec.description.links.get(edge.name)
        if special is None and edge.settings is None:
            if edge.role not in common:
                common[edge.role] = _resolve(spec, edge, None)
            found.append(common[edge.role])
        else:
            found.append(_resolve(spec, edge, special))
    rate = access_rate(edges, found)
    if rate == ACCESS_RATE:
        return found
    raised: dict[LinkSettings, LinkSettings] = {}
    for edge, link in zip(edges, found, strict=True):
        if edge.role == "access" and link not in raised:
            raised[link] = replace(link, forward=_at_least(link.forward, rate), backward=_at_least(link.backward, rate))
    return [raised.get(link, link) if edge.role == "access" else link for edge, link in zip(edges, found, strict=True)]


def access_rate(edges: Iterable[Edge], links: Iterable[LinkSettings]) -> Rate:
    """The rate of access links for which none is written."""
    rates = [
        way.rate
        for edge, link in zip(edges, links, strict=True)
        if edge.role == "wan"
        for way in (link.forward, link.backward)
    ]
    return max([ACCESS_RATE, *rates])


def _at_least(way: DirectionSettings, rate: Rate) -> DirectionSettings:
    return way if "rate" in way.paths or way.traced("rate") else replace(way, rate=rate)


def _resolve(spec: Spec, edge: Edge, special: fields.LinkKeys | None) -> LinkSettings:
    description = spec.description
    general: fields.LinkKeys = description.wan if edge.role == "wan" else description.access
    links: list[tuple[Path, fields.LinkKeys]] = [((edge.role,), general)]
    if edge.settings is not None:
        links.append((edge.path, edge.settings))
    if special is not None:
        links.append((("links", edge.name), special))
    base = links[-1][0]
    forward: list[Layer] = []
    backward: list[Layer] = []
    hardware, hardware_path = None, base
    mtu: int = description.mtu
    mtu_path: Path = ("mtu",)
    for path, link in links:
        for name, own, layers in (("forward", link.forward, forward), ("backward", link.backward, backward)):
            layers.append((path, link))
            if own is not None:
                layers.append(((*path, name), own))
        if link.mtu is not None:
            mtu, mtu_path = link.mtu, (*path, "mtu")
        if isinstance(link, fields.SingleLink) and link.hardware is not None:
            hardware, hardware_path = link.hardware, (*path, "hardware")
    default = WAN_RATE if edge.role == "wan" else ACCESS_RATE
    there, back = (settings(base, default, layers) for layers in (forward, backward))
    if (there.delay_ns is None) != (back.delay_ns is None):
        has, lacks, way = ("forward", "backward", there) if back.delay_ns is None else ("backward", "forward", back)
        message = f"{edge.name} has a delay {has} only: write one for {lacks} too"
        raise spec.error(way.path("delay"), message, way.written.delay)
    halves = [way for way in (there, back) if way.written.duplex == "half"]
    if len(halves) == 1:
        message = f"both directions of {edge.name} share the medium, or neither: write it for both"
        raise spec.error(halves[0].path("duplex"), message, "half")
    return LinkSettings(there, back, mtu, mtu_path, hardware, hardware_path)
