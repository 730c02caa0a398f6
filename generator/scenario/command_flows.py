"""The flows of commands, which emulated links count: who sends, who gets, and where they are counted.

Comes in: steps with `flows`, and the plan of their lab. Goes out: flows of the run's schedule, and what its links
count; errors point to the key that is wrong."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any, Literal

from ewan.generator.scenario.fields import CommandFlows, ScenarioStep
from ewan.generator.scenario.flows import Error
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Hop, Plan
from ewan.labs.record.schedule import CountedTool
from ewan.labs.runtime.program import CountedFlows

COUNTING = ("user", "ewan")
"""The backends whose links count flows: the model of links is in them."""
MOST_FLOWS = 64
"""Flows that have a place of their own in each direction of a link, beside those of stated ports."""
OWN_SOCKETS = 512
"""Places for the connections of a command whose flow is that of its own sockets."""
MOST_PORTS = 64
MOST_PLACES = 1024
"""emulator/model/src/flow_table.rs"""

Nodes = Callable[[Any, str], list[str]]


def ends(step: ScenarioStep, nodes: Sequence[str], named: Nodes, error: Error) -> list[tuple[str, str]]:
    """The node that sends the payload and the node that gets it, for each of the nodes in which a command runs."""
    wanted = step.flows
    assert wanted is not None

    def found(key: str, written: Any) -> list[str]:
        if written is None:
            return list(nodes)
        others = named(written, key)
        if len(others) not in (1, len(nodes)):
            raise error(("flows", key), f"are {len(others)} for {len(nodes)} nodes: write as many, or one")
        return list(islice(cycle(others), len(nodes)))

    pairs = list(zip(found("from", wanted.from_), found("to", wanted.to), strict=True))
    for source, sink in pairs:
        if source == sink:
            key = "to" if wanted.from_ is None else "from"
            raise error(("flows", key), f"{source} sends to itself: write the node at the other end")
    return pairs


class CountedLinks:
    """Collects what the links of a lab count for a run."""

    def __init__(self, plan: Plan, forwarding: Forwarding) -> None:
        self._plan, self._forwarding = plan, forwarding
        self._links = {link.name: link for link in plan.links if link.backend in COUNTING}
        self._addresses = {
            node.name: tuple(
                str(ipaddress.ip_interface(address).ip)
                for interface in node.interfaces
                for address in interface.addresses
            )
            for node in plan.nodes
        }
        self._flows: dict[tuple[str, str, int | None], str] = {}
        self._own: dict[tuple[str, str], str] = {}
        self._ports: set[int] = set()
        self.places = 0

    def tool(self, wanted: CommandFlows, name: str, source: str, sink: str, error: Error) -> CountedTool:
        """The addresses and ports of the flow `name`, and the link that counts it: the last one on its way that counts
        flows and sees its packets, and not those of a tunnel around them."""
        crossed = [each for each in self._forwarding.crossed(source, sink) if each[0].link in self._links]
        hops = [hop for hop, tunnels in crossed if not tunnels]
        if crossed and not hops:
            (tunnel, *_) = crossed[-1][1]
            message = f"the links between {source} and {sink} that count flows see packets of the tunnel {tunnel} alone"
            raise error(("flows",), f"{message}: leave it out, or give a link outside of the tunnel a delay")
        if not hops:
            others = self._others(self._forwarding.path(source, sink).hops)
            raise error(("flows",), f"no link between {source} and {sink} counts flows{others}")
        for port in wanted.port or (None,) * (wanted.sockets is None):
            other = self._flows.setdefault((source, sink, port), name)
            if other != name:
                what = "all that they exchange" if port is None else f"port {port}"
                raise error(("flows",), f"{what} from {source} to {sink} is {other} too: write other ports in one")
        all_of = self._flows.get((source, sink, None))
        own = self._own.setdefault((source, sink), name) if wanted.sockets else self._own.get((source, sink))
        if all_of is not None and own is not None:
            message = f"{all_of} is all that {source} sends to {sink}, and {own} what its own sockets do"
            raise error(("flows",), f"{message}: write ports, or own sockets for both")
        self._ports |= set(wanted.port)
        if len(self._ports) > MOST_PORTS:
            raise error(("flows", "port"), f"brings the ports of all flows to {len(self._ports)}: at most {MOST_PORTS}")
        self.places += OWN_SOCKETS if wanted.sockets else 2 * max(1, len(wanted.port))
        hop = hops[-1]
        ends = (self._addresses[source], self._addresses[sink])
        at: Literal["source", "sink"] | None = None
        if wanted.sockets is not None:
            at = "sink" if wanted.to is None else "source"
        return CountedTool(hop.link, hop.direction, *ends, wanted.port, at)

    def _others(self, hops: Sequence[Hop]) -> str:
        kinds = sorted({link.backend for link in self._plan.links for hop in hops if link.name == hop.link})
        return f", those of the backend {' and '.join(kinds)} do not" if kinds else ": it is a plain link"

    def check_alone(self, source: str, sink: str, name: str, error: Callable[[str], Error]) -> None:
        """Refuses a flow of the generator between nodes of which all packets are a command's."""
        other = self._flows.get((source, sink, None))
        if other is not None:
            raise error(name)((), f"{other} is all that {source} sends to {sink}: write the port of {other}")

    def wanted(self, always: bool) -> CountedFlows | None:
        """The links that count, and the flows that they count; None: no flows are counted."""
        if not self._links or not (always or self._flows or self._own):
            return None
        most = min(MOST_PLACES, MOST_FLOWS + self.places)
        return CountedFlows(tuple(self._links), most, tuple(sorted(self._ports)))
