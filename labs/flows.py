"""TCP flows of a lab that is up: what TCP knows of each, and what it achieves, from one look to the next.

In: a lab's plan; perhaps one of its nodes. Out: flows by the names of their nodes, and a table of them. A flow is shown
once, at the end that sends more; of a node all that end there. Looking takes at most a twentieth of the time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.base.units import NS_PER_SECOND, mean_rate_bps
from ewan.labs.base.units.shown import about
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError, RemoteLabs
from ewan.labs.runtime.connections import ConnectionState, Namespaces
from ewan.labs.runtime.containers import name_of

EVERY_S = 0.25
SHARE = 0.05
"""The largest share of one CPU."""
MOST = 200
"""Flows that are shown: those that send most."""
COLUMNS = ["flow", "congestion", "goodput", "cwnd", "RTT", "least RTT", "sent again"]


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection, seen from one of its ends. `id` stays the same; `sent_bps` and `received_bps` are what was
    acknowledged, and received in order, since the last look; None at the first."""

    id: str
    node: str
    port: int
    peer: str
    peer_port: int
    congestion: str
    sent_bps: int | None
    received_bps: int | None
    cwnd_segments: int
    cwnd_bytes: int
    rtt_ns: int
    min_rtt_ns: int | None
    retransmitted_segments: int


class Flows:
    """Looks at the flows of a lab again and again; `close` ends it. LabError where that cannot be."""

    def __init__(self, labs: RemoteLabs, plan: Plan, node: str | None = None) -> None:
        kinds = {each.name: each.kind for each in plan.nodes if each.kind != "emulator"}
        if node is not None and node not in kinds:
            raise LabError(f"{plan.lab} has no node {node[:64]}: it has {', '.join(list(kinds)[:12])}")
        if labs.elsewhere(plan.lab):
            raise LabError(f"{plan.lab} is on several machines: flows are shown only for labs on one machine")
        nodes = [node] if node is not None else [name for name, kind in kinds.items() if kind != "switch"]
        self._node = node
        self._names = {
            address.partition("/")[0]: each.name
            for each in plan.nodes
            for port in each.interfaces
            for address in port.addresses
        }
        self._namespaces = Namespaces({name: name_of(plan.lab, name) for name in nodes})
        self._before: dict[str, tuple[int, ConnectionState]] = {}
        self.wait_s = EVERY_S
        """Until the next look."""

    def look(self) -> list[Connection]:
        """The flows now, those that send most first. LabError."""
        begun = time.monotonic_ns()
        # Each node has a time of its own: one that the others make late would have a rate that no link has.
        found = [(node, connections, time.monotonic_ns()) for node, connections in self._namespaces.ask()]
        self.wait_s = max(EVERY_S, (time.monotonic_ns() - begun) / NS_PER_SECOND / SHARE)
        before, self._before = self._before, {}
        flows = []
        for node, connections, now in found:
            for told in connections:
                if self._node is None and self._other_tells(node, told):
                    continue
                name = f"{node} {told.cookie}"
                self._before[name] = (now, told)
                flows.append(self._flow(name, node, told, now, before.get(name)))
        flows.sort(key=lambda flow: (-(flow.sent_bps or 0) - (flow.received_bps or 0), flow.id))
        return flows[:MOST]

    def close(self) -> None:
        """No more looks."""
        self._namespaces.close()

    def _other_tells(self, node: str, told: ConnectionState) -> bool:
        peer = self._names.get(str(told.remote))
        if peer is None or told.acked_bytes > told.received_bytes:
            return False
        return told.acked_bytes < told.received_bytes or (peer, told.remote_port) < (node, told.local_port)

    def _flow(
        self, name: str, node: str, told: ConnectionState, now: int, before: tuple[int, ConnectionState] | None
    ) -> Connection:
        sent = received = None
        if before is not None:
            passed = max(1, now - before[0])
            sent = mean_rate_bps(max(0, told.acked_bytes - before[1].acked_bytes), passed)
            received = mean_rate_bps(max(0, told.received_bytes - before[1].received_bytes), passed)
        return Connection(
            name,
            node,
            told.local_port,
            self._names.get(str(told.remote), str(told.remote)),
            told.remote_port,
            told.congestion,
            sent,
            received,
            told.cwnd_segments,
            told.cwnd_segments * told.segment_bytes,
            told.rtt_ns,
            told.min_rtt_ns,
            told.retransmitted_segments,
        )


def view(plan: Plan, flows: list[Connection]) -> Sheet:
    """The table of flows."""
    rows = [
        [
            f"{flow.node}:{flow.port} → {flow.peer}:{flow.peer_port}",
            flow.congestion,
            "" if flow.sent_bps is None else about(flow.sent_bps, "rate"),
            f"{flow.cwnd_segments} ({about(flow.cwnd_bytes, 'size')})",
            about(flow.rtt_ns, "time"),
            "" if flow.min_rtt_ns is None else about(flow.min_rtt_ns, "time"),
            str(flow.retransmitted_segments or ""),
        ]
        for flow in flows
    ]
    return grid(f"TCP flows of {plan.lab}", COLUMNS, rows)
