"""A link's settings put together from all the places where a description may say them.

Comes in: a spec and the edges of its topology. Goes out: for each direction what holds, and where it was written, so
that a refusal can point there. The nearer to the link wins: wan or access, its direction, the link itself, the link's
direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ewan.labs import traces
from ewan.labs.base.units import Duration, Rate
from ewan.labs.spec import Spec, fields
from ewan.labs.spec.source import Path
from ewan.labs.spec.values import DelayTable
from ewan.labs.topologies import Edge

TRACED: Mapping[traces.Column, tuple[str, ...]] = {
    "rate": ("rate", "burst", "peak"),
    "delay": ("delay", "jitter", "distribution", "correlation"),
    "loss": ("loss",),
    "buffer": ("buffer",),
}
"""What a trace may say, and the keys of a description that say the same."""
WAN_RATE, ACCESS_RATE = Rate.parse("1Gbit/s"), Rate.parse("10Gbit/s")


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """One direction: what somebody wrote, and where; `base` is where the rest would be written."""

    base: Path
    rate: Rate
    """As written, the mean of a trace, or the default."""
    written: fields.Direction
    paths: Mapping[str, Path]

    def path(self, key: str) -> Path:
        """Where `key` is written, or would be."""
        return self.paths.get(key, (*self.base, key))

    def traced(self, column: traces.Column) -> traces.Trace | None:
        """The trace that says a column; None where none does."""
        trace = None if self.written.trace is None else self.written.trace.trace
        return trace if trace is not None and column in trace.columns else None

    @property
    def delay_ns(self) -> int | None:
        """One-way base delay if it was written; the mean of a table or of a trace."""
        delay, traced = self.written.delay, self.traced("delay")
        if traced is not None:
            return traces.mean(traced, "delay")
        if isinstance(delay, DelayTable):
            return delay.mean_ns
        return delay.ns if isinstance(delay, Duration) else None

    @property
    def impaired(self) -> bool:
        """Whether it needs an emulator: a network card has a rate and a drop-tail queue, and no more."""
        return any(not _has_card(key, getattr(self.written, key)) for key in self.paths)

    @property
    def why_impaired(self) -> Path | None:
        """Where the first key stands that needs an emulator, in alphabetical order."""
        keys = (key for key in sorted(self.paths) if not _has_card(key, getattr(self.written, key)))
        return next((self.paths[key] for key in keys), None)


def _has_card(key: str, value: object) -> bool:
    """Whether a network card does it too. Any key that is not named here needs an emulator."""
    match key, value:
        case (("rate" | "buffer" | "framing"), _):
            return True
        case "delay", Duration(ns):
            return ns == 0
        case "queue", fields.Queue():
            return isinstance(value.model, fields.DropTail)
        case (("ecn" | "acks"), "keep") | ("duplex", "full") | (("blackhole" | "burst" | "peak" | "slot"), "none"):
            return True
        case "police", fields.Police():
            return value.rate is None
        case "aggregate", fields.Aggregate():
            return value.packets is None
        case "harq", fields.Harq():
            return value.errors is None or not value.errors.ppb
        case "displace", fields.Displace():
            return value.share is None
        case "reorder", bool():
            return not value
    return False


@dataclass(frozen=True, slots=True, eq=False)
class LinkSettings:
    """Both directions of a link; `mtu` is a link's own or the lab's, written at `mtu_path`."""

    forward: Settings
    backward: Settings
    mtu: int
    mtu_path: Path
    hardware: fields.Hardware | None = None
    """The external emulator that it is; written at `hardware_path`."""
    hardware_path: Path = ()

    @property
    def rtt_ns(self) -> int | None:
        """Both ways, if both were written."""
        there, back = self.forward.delay_ns, self.backward.delay_ns
        return None if there is None or back is None else there + back

    @property
    def impaired(self) -> bool:
        """Whether it needs an emulator: a network card has a rate and a drop-tail queue, and no more."""
        return self.forward.impaired or self.backward.impaired


Layer = tuple[Path, fields.Direction]
"""A group of keys and where it is written."""


def settings(base: Path, default_rate: Rate, layers: Sequence[Layer]) -> Settings:
    """The settings of one direction, from all that is written about it, the most general first: the last one wins."""
    values: dict[str, object] = {}
    paths: dict[str, Path] = {}
    for path, layer in layers:
        if layer.trace is not None:
            for key in _said(layer.trace):
                values.pop(key, None)
                paths.pop(key, None)
        for key in layer.model_fields_set & fields.Direction.model_fields.keys():
            value = getattr(layer, key)
            if value is not None:
                values[key] = value
                paths[key] = (*path, key)
    written = fields.Direction.model_construct(**values)  # type: ignore[arg-type]
    way = Settings(base, written.rate or default_rate, written, paths)
    traced = way.traced("rate")
    return way if traced is None else replace(way, rate=Rate(traces.mean(traced, "rate")))


def _said(trace: fields.Trace) -> Iterable[str]:
    """Keys in whose place a trace comes that is written nearer to the link than they are."""
    return (key for column in trace.trace.columns for key in TRACED[column])


def resolve(spec: Spec, edges: Sequence[Edge]) -> list[LinkSettings]:
    """The settings of every edge; edges about which nothing special was written share one object.

    Access links are no bottleneck unless somebody says so: without a rate of their own, they are as fast as the fastest
    wide-area link, and `ACCESS_RATE` at least.
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
    """That of access links for which no rate is written."""
    rates = [
        way.rate
        for edge, link in zip(edges, links, strict=True)
        if edge.role == "wan"
        for way in (link.forward, link.backward)
    ]
    return max([ACCESS_RATE, *rates])


def _at_least(way: Settings, rate: Rate) -> Settings:
    return way if "rate" in way.paths or way.traced("rate") else replace(way, rate=rate)


def _resolve(spec: Spec, edge: Edge, special: fields.Link | None) -> LinkSettings:
    description = spec.description
    general: fields.Link = description.wan if edge.role == "wan" else description.access
    links: list[tuple[Path, fields.Link]] = [((edge.role,), general)]
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
