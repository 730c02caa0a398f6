"""The elements of an experiment in NXE's XML: their children, with numbers and units. The schema, as data.

In: the elements of a file. Out: DescriptionError at the first that has no place there, is missing, or stands twice.
`POSTER` marks elements of the example of the HSTTS poster (Guillier and Vicat-Blanc Primet); the others are for parts
that the papers describe without showing their XML (repetitions, general configuration), and for further needs of a
lab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ewan.extras.nxe.tree import Element
from ewan.labs.base.wording import nearest
from ewan.labs.spec import DescriptionError

ROOT = "experiment"
POSTER = "poster"
OURS = "ours"


@dataclass(frozen=True, slots=True)
class ChildElement:
    """An element within another. `times`: 1, ? (at most once), + (at least once), * (any number).

    `unit`: the unit of a bare number. `empty`: its text may be empty."""

    times: Literal["1", "?", "+", "*"]
    meaning: str
    source: str = OURS
    unit: str = ""
    empty: bool = False


_WAY = {
    "capacity": ChildElement("?", "rate; 1 Gbit/s if absent", POSTER, "Mbit/s"),
    "delay": ChildElement("?", "one way; the site's, or none, if absent", OURS, "ms"),
    "buffer": ChildElement("?", "what may wait: `255pkt`, `500kB`, `1BDP`; 1BDP of the longest RTT if absent"),
    "loss": ChildElement("?", "share of packets that are lost, like `0.1%`; none if absent"),
}

SCHEMA: dict[str, dict[str, ChildElement]] = {
    ROOT: {
        "name": ChildElement("?", "names results and the lab; the file's if absent"),
        "title": ChildElement("?", "one line, for people"),
        "about": ChildElement("?", "what it is for, in the report"),
        "source": ChildElement("?", "the paper that it is from"),
        "parameter": ChildElement("*", "a value with a name, used as `${name}`; several values are a sweep"),
        "configuration": ChildElement("?", "the general configuration"),
        "topology": ChildElement("1", "sites, aggregation points, links", POSTER),
        "scenario": ChildElement("1", "what nodes do, and when", POSTER),
    },
    "parameter": {
        "name": ChildElement("1", "small letters, digits and underscores"),
        "value": ChildElement("+", "a run for each"),
    },
    "configuration": {
        "repetitions": ChildElement("?", "how often each run is made, each with a seed of its own"),
        "seed": ChildElement("?", "of everything random"),
        "protocol": ChildElement("?", "congestion control where a step does not say its own; cubic if absent"),
        "sndbuf": ChildElement("?", "of sending sockets; what the kernel finds right if absent"),
        "rcvbuf": ChildElement("?", "of receiving sockets; what the kernel finds right if absent"),
        "mtu": ChildElement("?", "largest IP packet in bytes; 1500 if absent"),
        "longest": ChildElement("?", "what still runs then is ended", OURS, "s"),
        "sample": ChildElement("?", "from one look at a sender's TCP to the next; 100ms if absent", OURS, "s"),
        "series": ChildElement("?", "bins of what receivers get; 100ms if absent", OURS, "s"),
        "watch": ChildElement("?", "from one look at the links' counters to the next; 100ms if absent", OURS, "s"),
    },
    "topology": {
        "site": ChildElement("+", "hosts that hang on one router", POSTER),
        "aggregator": ChildElement("+", "a router between sites", POSTER),
    },
    "site": {
        "sitename": ChildElement("1", "its nodes are called after it: sagittaire1, sagittaire2 …", POSTER),
        "number": ChildElement("?", "how many nodes; one, called as the site, if absent", POSTER),
        "delay": ChildElement("?", "one way, from its nodes to the aggregator; none if absent", POSTER, "ms"),
        "nodecapacity": ChildElement("?", "rate of each node's card; 10 Gbit/s if absent", POSTER, "Mbit/s"),
        "nodebuffer": ChildElement("?", "what may wait at a card; 1000pkt if absent"),
        "nodeloss": ChildElement("?", "share of packets that are lost between a node and its router; none if absent"),
        "aggreg": ChildElement("1", "the aggregator that it hangs on", POSTER),
        "frontal": ChildElement("?", "reserves and deploys real nodes: a lab needs neither", POSTER),
    },
    "frontal": {
        "frontalname": ChildElement("?", "not used", POSTER, empty=True),
        "resatool": ChildElement("?", "not used", POSTER, empty=True),
        "resaparam": ChildElement("?", "not used", POSTER, empty=True),
        "deploytool": ChildElement("?", "not used", POSTER, empty=True),
        "deployparam": ChildElement("?", "not used", POSTER, empty=True),
    },
    "aggregator": {
        "aggregid": ChildElement("1", "its name", POSTER),
        "link": ChildElement("*", "a link to it; nodes of a site without one hang on the aggregator itself", POSTER),
    },
    "link": {
        "from": ChildElement("1", "a site or another aggregator", POSTER),
        "name": ChildElement("?", "the link's; FROM-AGGREGATOR if absent"),
        **_WAY,
        "backward": ChildElement("?", "what differs in the direction from the aggregator"),
    },
    "backward": _WAY,
    "scenario": {
        "node": ChildElement("+", "one node or several, and what they do", POSTER),
    },
    "node": {
        "id": ChildElement("1", "names, `sagittaire{1-10}`", POSTER),
        "type": ChildElement("1", "its role: server, client, or command", POSTER),
        "target": ChildElement("?", "to whom a client sends, in all its steps", POSTER),
        "step": ChildElement("+", "what it does", POSTER),
    },
    "step": {
        "label": ChildElement("1", "in tables and in names of flows", POSTER),
        "date": ChildElement("1", "when its first node starts, from the timer's start; a law draws it", POSTER, "s"),
        "offset": ChildElement(
            "?", "from one node's start to the next's; a duration or a law; none if absent", POSTER, "s"
        ),
        "repeat": ChildElement("?", "each node again"),
        "role": ChildElement("?", "load, reverse, background or cross: what metrics count it as; load if absent"),
        "target": ChildElement("?", "to whom it sends, in this step", POSTER),
        "script": ChildElement("1", "launch_server.sh, launch_client.sh, or a command's program", POSTER),
        "scriptparam": ChildElement("?", "the script's options", POSTER, empty=True),
    },
    "repeat": {
        "times": ChildElement("1", "how often in all"),
        "every": ChildElement("1", "from one start to the next; a duration or a law", OURS, "s"),
    },
}


def check(root: Element, file: str) -> None:
    """DescriptionError unless a tree is of this schema."""
    if root.name != ROOT:
        around = f": write <{ROOT}> around it" if root.name in SCHEMA else f": write <{ROOT}>"
        raise error(file, root, f"is no experiment{around}")
    _check(root, file)


def error(file: str, element: Element, message: str) -> DescriptionError:
    """The error at an element: `file:line:column: <date> "5x": …`."""
    shown = f' "{element.text}"' if element.text else ""
    return DescriptionError(f"{file}:{element.line}:{element.column}: <{element.name}>{shown}: {message}")


def _check(element: Element, file: str) -> None:
    """An element of SCHEMA, and all within it."""
    known = SCHEMA[element.name]
    if element.text:
        raise error(file, element, f"holds elements, not text: write <{next(iter(known))}> and so on")
    seen: set[str] = set()
    for child in element.children:
        rule = known.get(child.name)
        if rule is None:
            raise error(file, child, f"is unknown in <{element.name}>, {nearest(child.name, known)}")
        if child.name in seen and rule.times in "1?":
            raise error(file, child, f"stands twice in <{element.name}>: write it once")
        seen.add(child.name)
        if child.name in SCHEMA:
            _check(child, file)
        elif child.children:
            raise error(file, child, f"holds text, not elements: leave <{child.children[0].name}> out")
        elif not child.text and not rule.empty:
            raise error(file, child, "is empty: write its value, or leave it out")
    for name, rule in known.items():
        if rule.times in "1+" and name not in seen:
            raise error(file, element, f"has no <{name}>: write one")


def table() -> str:
    """The schema as Markdown: a row an element, for docs/how-to/experiments/nxe.md."""
    lines = ["| element | within | times | meaning | unit of a bare number | from |", "|---|---|---|---|---|---|"]
    for parent, children in SCHEMA.items():
        for name, rule in children.items():
            cells = [f"`{name}`", f"`{parent}`", rule.times, rule.meaning, rule.unit, rule.source]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
