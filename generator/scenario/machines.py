"""Hosts that are machines with kernels of their own: the traffic of a run from and to them, and the start of servers
there.

Comes in: a plan. Out: the needs of its machines; errors point to the key that is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ewan.generator import external
from ewan.generator.scenario.flows import Error
from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.plan import Plan
from ewan.labs.runtime.program import Command

LEAD_NS = 5 * NS_PER_SECOND
"""A server in a machine is started so long before it would be elsewhere: over a connection, by a slow processor."""


class Machines:
    """The machines of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._names = {node.name for node in plan.nodes if node.machine is not None}

    def check(self, kind: str, generator: str, ends: Iterable[str], error: Error) -> None:
        """Refuses generators without a program there: our own generator has its sockets in namespaces."""
        for node in ends:
            if node in self._names and generator != "iperf3":
                if kind in ("bulk", "bidirectional", "udp"):
                    raise error(("generator",), f'{node} is a machine of its own: write "generator: iperf3"')
                message = f'{node} is a machine of its own: write bulk, bidirectional or udp, with "generator: iperf3"'
                raise error((kind,), message)

    def check_ready(self, node: str, error: Error) -> None:
        """Refuses to wait for a port that is in a machine's own kernel."""
        if node in self._names:
            raise error(("ready",), f"{node} is a machine of its own, whose ports are not seen: leave it out")

    def check_sockets(self, node: str, error: Error) -> None:
        """Refuses flows by sockets that are in a machine's own kernel."""
        if node in self._names:
            message = f"{node} is a machine of its own, whose sockets are not seen: write the port"
            raise error(("flows", "sockets"), message)

    def lead_ns(self, generator: str, sink: str) -> int:
        """The time (ns) that a schedule needs before a transfer."""
        return external.lead_ns(generator) + (LEAD_NS if sink in self._names else 0)

    def early(self, server: Command) -> Command:
        """The command of a server, earlier in a machine."""
        return replace(server, at_ns=max(0, server.at_ns - LEAD_NS)) if server.node in self._names else server
