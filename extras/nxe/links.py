"""NXE's abstract topology as a graph of a lab: sites and aggregators with the links between them.

In: `<topology>`. Out: `lab.topology.graph` of a scenario. An aggregator is a router. A site whose link it has is a
router with the site's name, on which the site's nodes hang; a site without one has its nodes on the aggregator itself.
A site without a number is one node; its link, if it has one, ends at the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ewan.extras.nxe import vocabulary
from ewan.extras.nxe.builder import ScenarioBuilder
from ewan.extras.nxe.tree import Element
from ewan.labs.base.source import Path
from ewan.labs.base.wording import nearest

_LINKS: Path = ("lab", "topology", "graph", "links")
MOST_NODES = 20_000
CAPACITY, NODE_CAPACITY = "1Gbit/s", "10Gbit/s"
_KEYS = {"capacity": "rate", "delay": "delay", "buffer": "buffer", "loss": "loss"}


@dataclass(slots=True)
class NxeTopology:
    """The hosts and routers that sites and aggregators stand for."""

    hosts: dict[str, Element]
    routers: dict[str, Element]
    element: Element

    def known(self, name: str, element: Element, written: ScenarioBuilder) -> None:
        """DescriptionError at `element` where no site has a node of this name."""
        if name not in self.hosts and name not in self.routers:
            raise written.error(element, f"no site has a node {name}, {nearest(name, self.hosts)}")

    def pairs(self, written: ScenarioBuilder, talking: list[tuple[str, str]]) -> None:
        """Makes the pairs of hosts that communicate the pairs of the lab."""
        if talking:
            written.put(("lab", "topology", "graph", "pairs"), [list(ends) for ends in talking], self.element)


def topology(element: Element, written: ScenarioBuilder) -> NxeTopology:
    """Puts the lab's graph into a scenario."""
    return _Builder(element, written).build()


class _Builder:
    def __init__(self, element: Element, written: ScenarioBuilder) -> None:
        self._element, self._written = element, written
        self._hosts: dict[str, Element] = {}
        self._routers: dict[str, Element] = {}
        self._links: dict[str, Element] = {}

    def build(self) -> NxeTopology:
        written = self._written
        sites = {self._word(site, "sitename"): site for site in self._element.every("site")}
        if len(sites) < len(list(self._element.every("site"))):
            raise written.error(self._element, "has two sites of one name: write another name for one")
        aggregators = [(self._word(each, "aggregid"), each) for each in self._element.every("aggregator")]
        for name, each in aggregators:
            self._add(self._routers, name, each)
        linked = self._uplinks(sites)
        for name, site in sites.items():
            if name in linked and site.first("number") is not None:
                self._add(self._routers, name, site)
        graph: Path = _LINKS[:-1]
        written.put(graph, {}, self._element)
        written.put((*graph, "hosts"), [], self._element)
        written.put((*graph, "routers"), list(self._routers), self._element)
        written.put(_LINKS, [], self._element)
        count = 0
        for name, site in sites.items():
            count += self._site(name, site, name in linked, count)
        for name, each in aggregators:
            for link in each.every("link"):
                self._uplink(name, link, sites)
        written.put((*graph, "hosts"), list(self._hosts), self._element)
        return NxeTopology(self._hosts, self._routers, self._element)

    def _word(self, element: Element, name: str) -> str:
        """A site's or an aggregator's name in small letters, as nodes' names are."""
        return element.said(name).lower()

    def _add(self, group: dict[str, Element], name: str, element: Element) -> None:
        if name in self._hosts or name in self._routers:
            raise self._written.error(element, f"stands for a second node {name}: write another name")
        group[name] = element

    def _uplinks(self, sites: dict[str, Element]) -> dict[str, Element]:
        """Sites with a link of their own, which must be to the aggregator that they name."""
        result = {}
        for each in self._element.every("aggregator"):
            for link in each.every("link"):
                end = link.first("from")
                assert end is not None
                name = end.text.lower()
                if name in sites:
                    if name in result:
                        raise self._written.error(end, "has a second link: write one")
                    own = sites[name].first("aggreg")
                    if own is not None and own.text.lower() != self._word(each, "aggregid"):
                        message = f"its link is to {each.said('aggregid')}: write that, or move the link"
                        raise self._written.error(own, message)
                    result[name] = link
                elif name not in self._routers:
                    known = [*sites, *self._routers]
                    raise self._written.error(end, f"is no site and no aggregator, {nearest(name, known)}")
        return result

    def _site(self, name: str, site: Element, linked: bool, before: int) -> int:
        """The nodes of a site with the links of their cards; how many they are."""
        written, number, aggregator = self._written, site.first("number"), site.first("aggreg")
        assert aggregator is not None
        if aggregator.text.lower() not in self._routers:
            message = f"is no aggregator, {nearest(aggregator.text.lower(), self._routers)}"
            raise written.error(aggregator, message)
        if number is None:
            self._add(self._hosts, name, site)
            if not linked:
                self._card(name, aggregator.text.lower(), site, linked)
            return 1
        if not (number.text.isascii() and number.text.isdigit() and 1 <= int(number.text[:9]) <= MOST_NODES - before):
            raise written.error(number, f'is no number of nodes: write 1 to {MOST_NODES - before}, like "10"')
        for place in range(1, int(number.text) + 1):
            self._add(self._hosts, f"{name}{place}", site)
            self._card(f"{name}{place}", name if linked else aggregator.text.lower(), site, linked)
        return int(number.text)

    def _card(self, host: str, router: str, site: Element, linked: bool) -> None:
        """The link between a node and its router; the site's delay is here where the site has no link of its own."""
        keys: dict[str, tuple[Any, Element]] = {"rate": (NODE_CAPACITY, site)}
        names = {"nodecapacity": "rate", "nodebuffer": "buffer", "nodeloss": "loss"}
        for name, key in (names if linked else {**names, "delay": "delay"}).items():
            if (element := site.first(name)) is not None:
                keys[key] = self._amount(element, "site"), element
        self._put(f"access-{host}", host, router, "access", {"delay": ("0ms", site), **keys}, site)

    def _uplink(self, aggregator: str, link: Element, sites: dict[str, Element]) -> None:
        """A wide-area link to an aggregator; `forward` goes to it."""
        end = link.first("from")
        assert end is not None
        name = end.text.lower()
        delay = sites[name].first("delay") if name in sites else None
        if delay is not None and link.first("delay") is not None:
            raise self._written.error(delay, "and the delay of the site's link are one: write one of them")
        keys: dict[str, tuple[Any, Element]] = {"rate": (CAPACITY, link), "delay": ("0ms", link)}
        if delay is not None:
            keys["delay"] = self._amount(delay, "site"), delay
        keys |= self._way(link)
        if name in sites and sites[name].first("number") is None:
            for useless in ("nodecapacity", "nodebuffer", "nodeloss"):
                if (element := sites[name].first(useless)) is not None:
                    message = "has no effect: the node hangs on the link itself, write the link's own value"
                    raise self._written.error(element, message)
        shown = link.said("name") or f"{name}-{aggregator}"
        path = self._put(shown, name, aggregator, "wan", keys, link)
        if (backward := link.first("backward")) is not None:
            for key, (value, element) in self._way(backward).items():
                self._written.put((*path, "backward", key), value, element)

    def _way(self, element: Element) -> dict[str, tuple[Any, Element]]:
        """Settings of a link's direction."""
        return {_KEYS[each.name]: (self._amount(each, "link"), each) for each in element.children if each.name in _KEYS}

    def _amount(self, element: Element, parent: str) -> str | int:
        return self._written.amount(element, vocabulary.SCHEMA[parent][element.name].unit)

    def _put(
        self, name: str, a: str, b: str, role: str, keys: dict[str, tuple[Any, Element]], element: Element
    ) -> Path:
        if name in self._links:
            raise self._written.error(element, f"is a second link {name}: write a <name> of its own")
        path: Path = (*_LINKS, len(self._links))
        self._links[name] = element
        self._written.put(path, {"name": name, "between": [a, b], "role": role}, element)
        for key, (value, source) in keys.items():
            self._written.put((*path, key), value, source)
        return path
