"""A lab's hosts, routers and links as sites and aggregators of NXE's abstract topology. Pure.

In: a network. Out: the children of `<topology>`. Routers are aggregators. Hosts of one router whose names differ only
by their number and whose cards are alike are a site; any other host is a site of its own, without a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement

from ewan.extras.simulators.network import NetworkLink, SimulatedDirection, SimulatedNetwork
from ewan.labs.base.units import Duration, Fraction, Rate, Size
from ewan.labs.spec import DescriptionError

WIRE_BYTES = 38
_NUMBERED = re.compile(r"(.*?)([1-9][0-9]*)")
_MBIT, _MS = Rate.parse("1Mbit/s").bps, Duration.parse("1ms").ns


@dataclass(frozen=True, slots=True)
class _Hung:
    """A host on its link: the other end, and the directions from and to the host."""

    host: str
    router: str
    link: NetworkLink
    up: SimulatedDirection
    down: SimulatedDirection

    @property
    def is_card(self) -> bool:
        """Return whether the link is the card of a site's nodes: both directions alike."""
        return self.link.role == "access" and self.up == self.down and self.link.name == f"access-{self.host}"


def describe(topology: Element, network: SimulatedNetwork) -> None:
    """Writes sites, then aggregators with their links; DescriptionError for properties that they cannot have."""
    for link in network.links:
        for sender, receiver, way in link.ways:
            if way.overhead_bytes != WIRE_BYTES:
                message = f'{link.name} ({sender} to {receiver}): NXE counts what is on the wire: write "framing: wire"'
                raise DescriptionError(message)
    hung = {each.host: each for each in _hung(network)}
    for name, count in _sites(network, hung).items():
        _site(topology, name, count, hung[f"{name}{count}" if count else name])
    for router in network.routers:
        aggregator = SubElement(topology, "aggregator")
        SubElement(aggregator, "aggregid").text = router
        for link in network.links:
            ends = {link.a, link.b}
            if not ends & set(network.hosts):
                if link.b == router:
                    _link(aggregator, link, link.a, link.forward, link.backward)
            elif router in ends:
                (host,) = ends - {router}
                if not hung[host].is_card:
                    _link(aggregator, link, host, hung[host].up, hung[host].down)


def ranges(names: Sequence[str]) -> list[str]:
    """`left1, left2, left3, right1` as `left{1-3}` and `right1`, in their order."""
    result: list[tuple[str, int, int]] = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        stem, number = (match[1], int(match[2])) if match else (name, 0)
        if result and number and result[-1][0] == stem and result[-1][2] == number - 1 and result[-1][1]:
            result[-1] = stem, result[-1][1], number
        else:
            result.append((stem, number, number))
    return [f"{stem}{{{low}-{high}}}" if high > low else f"{stem}{low or ''}" for stem, low, high in result]


def _hung(network: SimulatedNetwork) -> list[_Hung]:
    hosts = set(network.hosts)
    result = []
    for link in network.links:
        for host, router, up in link.ways:
            if host in hosts:
                if router in hosts:
                    raise DescriptionError(f"{link.name}: joins two hosts: NXE has hosts only on aggregators")
                result.append(_Hung(host, router, link, up, link.backward if host == link.a else link.forward))
    return result


def _sites(network: SimulatedNetwork, hung: dict[str, _Hung]) -> dict[str, int]:
    """Each site's name, and how many nodes it has; 0: it is one node of that very name."""
    groups: dict[str, list[str]] = {}
    for host in network.hosts:
        match = _NUMBERED.fullmatch(host)
        groups.setdefault(match[1] if match else "", []).append(host)
    result: dict[str, int] = {}
    for stem, names in groups.items():
        first = hung[names[0]]
        alike = all(
            hung[name].is_card and (hung[name].router, hung[name].up) == (first.router, first.up) for name in names
        )
        numbered = sorted(names) == sorted(f"{stem}{number}" for number in range(1, len(names) + 1))
        if stem and stem not in network.nodes and alike and numbered and len(names) > 1:
            result[stem] = len(names)
        else:
            result |= dict.fromkeys(names, 0)
    return result


def _site(topology: Element, name: str, count: int, of: _Hung) -> None:
    site = SubElement(topology, "site")
    said = {"sitename": name, "number": str(count) if count else ""}
    if of.is_card:
        said |= {"delay": _delay(of.up.delay_ns) if of.up.delay_ns else ""}
        said |= {"nodecapacity": _rate(of.up.rate_bps), "nodebuffer": _buffer(of.up)}
        said |= {"nodeloss": str(Fraction(of.up.loss_ppb)) if of.up.loss_ppb else ""}
    _put(site, {**said, "aggreg": of.router})


def _link(
    aggregator: Element, link: NetworkLink, end: str, forward: SimulatedDirection, backward: SimulatedDirection
) -> None:
    """A link to an aggregator; `forward` goes to it."""
    element = SubElement(aggregator, "link")
    there, back = _way(forward), _way(backward)
    _put(element, {"from": end, "name": link.name, **there})
    if differs := {key: text for key, text in back.items() if text != there[key]}:
        _put(SubElement(element, "backward"), {key: text or "0%" for key, text in differs.items()})


def _way(way: SimulatedDirection) -> dict[str, str]:
    loss = str(Fraction(way.loss_ppb)) if way.loss_ppb else ""
    return {"capacity": _rate(way.rate_bps), "delay": _delay(way.delay_ns), "buffer": _buffer(way), "loss": loss}


def _put(parent: Element, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        if text:
            SubElement(parent, name).text = text


def _rate(bps: int) -> str:
    """A rate in Mbit/s, as NXE has it, or with its unit."""
    return str(Rate(bps)) if bps % _MBIT else str(bps // _MBIT)


def _delay(ns: int) -> str:
    """A delay in ms, as NXE has it, or with its unit."""
    return str(Duration(ns)) if ns % _MS else str(ns // _MS)


def _buffer(way: SimulatedDirection) -> str:
    return f"{way.limit_packets}pkt" if way.limit_packets is not None else str(Size(way.limit_bytes or 0))
