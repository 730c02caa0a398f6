"""The links that the payload of a run's flows crosses, with directions, for the run's schedule. Pure.

In: a plan's paths, steps and who takes part in them. Out: for each source and sink the links with directions; for
messages, which many ranks may send to each other, and for flows over several paths, all of their links together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ewan.generator.scenario.fields import ScenarioStep
from ewan.generator.scenario.kinds import Pattern
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Hop
from ewan.labs.record.schedule import CrossedLink, CrossedPath

BOTH_WAYS = ("bidirectional", "requests")
"""Kinds of steps in which the sink sends payload too."""

Key = tuple[str | None, str | None, str]
"""Source, sink and role; messages have neither source nor sink."""


class FlowPaths:
    """Collects the links that the flows of a run cross, by source, sink and role."""

    def __init__(self, forwarding: Forwarding) -> None:
        self._forwarding = forwarding
        self._hops: dict[Key, dict[Hop, None]] = {}
        self._parallel: set[Key] = set()
        self._groups: set[tuple[str, str, tuple[str, ...]]] = set()

    def add(
        self,
        step: ScenarioStep,
        source: str,
        sink: str,
        ranks: Sequence[str] = (),
        beside: Sequence[tuple[str, str]] = (),
    ) -> None:
        """One member of a step; `beside`: the ends of its further paths, whose links count as those of the first."""
        role = step.role or "load"
        if ranks:
            self._between(role, step.work.pattern, tuple(ranks))
            return
        for a, b in ((source, sink), (sink, source)) if step.kind in BOTH_WAYS else ((source, sink),):
            if (a, b, role) not in self._hops:
                self._hops[a, b, role] = dict.fromkeys(self._forwarding.path(a, b).hops)
        for ends in beside:
            self._parallel.add((source, sink, role))
            self._hops[source, sink, role] |= dict.fromkeys(self._forwarding.path(*ends).hops)

    def _between(self, role: str, pattern: Pattern, ranks: tuple[str, ...]) -> None:
        if (role, pattern, ranks) in self._groups:
            return
        self._groups.add((role, pattern, ranks))
        hops = self._hops.setdefault((None, None, role), {})
        for sender, receiver in sorted(partners(pattern, len(ranks))):
            hops |= dict.fromkeys(self._forwarding.path(ranks[sender], ranks[receiver]).hops)

    def found(self) -> tuple[CrossedPath, ...]:
        """All that was collected, in the order in which it came."""
        return tuple(
            CrossedPath(
                source,
                sink,
                role,
                tuple(CrossedLink(hop.link, hop.direction, self._forwarding.rate_bps(hop)) for hop in hops),
                (source, sink, role) in self._parallel,
            )
            for (source, sink, role), hops in self._hops.items()
        )


def partners(pattern: Pattern, ranks: int) -> set[tuple[int, int]]:
    """The pairs of a sending and a receiving rank, as emulator/traffic/src/flows/messages/pattern.rs has them."""
    match pattern:
        case "ping-pong":
            return {(rank, rank ^ 1) for rank in range(ranks)}
        case "all-to-all":
            return {(a, b) for a in range(ranks) for b in range(ranks) if a != b}
        case "neighbour-exchange":
            return {(rank, (rank + step) % ranks) for rank in range(ranks) for step in (1, -1)}
        case "barrier":
            steps = [1 << power for power in range((ranks - 1).bit_length())]
            return {(rank, (rank + step) % ranks) for rank in range(ranks) for step in steps}
        case never:
            assert_never(never)
