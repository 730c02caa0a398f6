"""Flows over several paths (MPTCP, RFC 8684): the addresses between which the kernel makes them.

In: a plan's paths, the settings of a step and the ends of a member. Out: the paths of its request, and the ends whose
links its payload crosses; errors point to the key that is wrong.
"""

from __future__ import annotations

from ewan.generator.scenario.fields import DEFAULT_SCHEDULER, MOST_PATHS
from ewan.generator.scenario.flows import Error, FlowSettings
from ewan.labs.forwarding import BETWEEN, Forwarding, node_of
from ewan.labs.plan import Plan
from ewan.labs.record.traffic import Multipath

NOT_BESIDE = ("mss", "window", "nodelay", "ecn", "pacing")
"""Keys that sockets of MPTCP have not, or that hold for one path only."""


class MultipathFlows:
    """The flows of a run that have several paths."""

    def __init__(self, plan: Plan, forwarding: Forwarding, clock: str) -> None:
        self._forwarding = forwarding
        self._only_default = clock == "virtual" and plan.kernel is None
        self._of_nodes: dict[str, Multipath] = {}

    def of(self, settings: FlowSettings, source: str, sink: str, error: Error) -> Multipath | None:
        """The paths of one member; None for plain TCP."""
        wanted = settings.multipath
        if wanted is None or wanted.paths == 1:
            return None
        socket = settings.socket
        if settings.generator != "ewan":
            raise error(("multipath",), f'{settings.generator} has one path: leave it out, or write "generator: ewan"')
        given = (socket.mss_bytes, socket.window_bytes, socket.nodelay, socket.ecn, settings.pacing)
        for key, value in zip(NOT_BESIDE, given, strict=True):
            if value:
                raise error((key,), "is not of a flow over several paths: leave it out, or multipath")
        if self._only_default and wanted.scheduler != DEFAULT_SCHEDULER:
            message = f"the virtual kernel has no scheduler {wanted.scheduler}: write {DEFAULT_SCHEDULER}"
            raise error(("multipath", "scheduler"), message)
        ends = [self._others(source, sink), self._others(sink, source)]
        most = min(1 + len(ends[0]) + len(ends[1]), MOST_PATHS)
        nodes = node_of(source), node_of(sink)
        if most == 1:
            raise error(("multipath",), f"neither {nodes[0]} nor {nodes[1]} has several links: leave it out")
        paths = most if wanted.paths is None else wanted.paths
        if paths > most:
            raise error(("multipath", "paths"), f"{nodes[0]} and {nodes[1]} have {most} at most: write {most}")
        here = tuple(ends[0])[: paths - 1]
        found = Multipath(paths, wanted.scheduler, here, tuple(ends[1])[: paths - 1 - len(here)])
        for node in nodes:
            before = self._of_nodes.setdefault(node, found)
            if (before.paths, before.scheduler) != (found.paths, found.scheduler):
                message = f"{node} has {before.paths} paths and the scheduler {before.scheduler} in another flow"
                raise error(("multipath",), f"{message}: write the same, as they are set for the whole host")
        return found

    def ends(self, multipath: Multipath, source: str, sink: str) -> list[tuple[str, str]]:
        """The ends of each path, the first one first."""
        here, there = self._others(source, sink), self._others(sink, source)
        return [
            (source, sink),
            *((here[address], sink) for address in multipath.from_),
            *((source, there[address]) for address in multipath.to),
        ]

    def _others(self, end: str, peer: str) -> dict[str, str]:
        """The addresses of a node at its other links, of the family by which it is connected, with the ends that they
        are."""
        own, _ = self._forwarding.addresses(end, peer)
        node = node_of(end)
        found = {}
        for link in self._forwarding.links_of(node):
            other = f"{node}{BETWEEN}{link}"
            address, _ = self._forwarding.addresses(other, peer)
            if address != own and address.version == own.version:
                found[str(address)] = other
        return found
