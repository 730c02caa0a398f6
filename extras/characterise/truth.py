"""The truth about a path from the plan of our own lab, beside the measured estimates. Pure.

In: a plan and two of its hosts. Out: a characterisation with the truth of each estimate that has one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ewan.calibration import expect
from ewan.calibration.expectation import BYTE_NS, framed_bytes, losses, untold
from ewan.calibration.probing import PROBE_BYTES
from ewan.extras.characterise.plan import Load
from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import PPB
from ewan.labs.forwarding import Forwarding
from ewan.labs.link import Direction, DropTail
from ewan.labs.plan import NetworkPath, Pair, Plan, digest
from ewan.labs.record.characterisation import Characterisation, Estimate, PathDirection


def path_of(plan: Plan, source: str, sink: str) -> Pair:
    """The path between two hosts; UserError where there is none."""
    forwarding = Forwarding(plan)
    try:
        there, back = forwarding.path(source, sink), forwarding.path(sink, source)
    except ValueError as error:
        raise UserError(f"--path {source} {sink}: {error}: name two hosts of lab {plan.lab}") from None
    return Pair(source, sink, forwarding.rtt_ns(source, sink), there, back)


def beside(found: Characterisation, plan: Plan, pair: Pair, loads: Sequence[Load]) -> Characterisation:
    """The characterisation with the plan's values; those that the plan lacks are None."""
    expected = expect.expectations(codec.replace(plan, pairs=(pair,))).pairs[0]
    constant = all(line.constant for line in expected.lines) and not expected.untold("delay")
    alone = found.clock == "virtual"
    ways = {
        name: _way(way, plan, path, loads if alone else None, found.mtu_bytes)
        for (name, way), path in zip(found.ways().items(), (pair.forward, pair.backward), strict=True)
    }
    return replace(
        found,
        base_rtt=_with(found.base_rtt, expected.round_trip_ns(PROBE_BYTES) if constant else None),
        forward=ways["forward"],
        backward=ways["backward"],
        plan_sha256=digest(plan),
    )


def _way(way: PathDirection, plan: Plan, path: NetworkPath, loads: Sequence[Load] | None, mtu: int) -> PathDirection:
    """The truth about one way. `loads`: all traffic that was sent beside the probes; None: it is unknown."""
    ways = _ways(plan, path)
    slowest = ways[path.slowest.link][1] if path.slowest.link in ways else None
    capacity = size = wait = None
    if slowest is not None and not untold(slowest, "rate"):
        capacity = slowest.rate_bps * mtu / framed_bytes(slowest.framing, mtu)
        if isinstance(slowest.queue.discipline, DropTail) and not untold(slowest, "queue limit"):
            size = float(_queue_packets(slowest, mtu) * mtu)
            wait = size * BYTE_NS / capacity
    through = math.prod(1 - losses(*each, PROBE_BYTES).probability for each in ways.values())
    others = None
    if loads is not None:
        others = float(sum(load.rate_bps for load in loads if _crosses(plan, load, path)))
    return replace(
        way,
        capacity=_with(way.capacity, capacity),
        buffer=_with(way.buffer, size),
        buffer_time=_with(way.buffer_time, wait),
        loss=_with(way.loss, (1 - through) * PPB),
        cross=_with(way.cross, others),
    )


def _ways(plan: Plan, path: NetworkPath) -> Mapping[str, tuple[str, Direction]]:
    """The back end and the direction of each emulated link on a path, by the link's name."""
    links = {link.name: link for link in plan.links}
    known = [(links[hop.link], hop) for hop in path.hops if hop.link in links]
    return {link.name: (link.backend, getattr(link, hop.direction)) for link, hop in known}


def _queue_packets(direction: Direction, packet_bytes: int) -> int:
    """The number of packets of this size that may wait."""
    size = framed_bytes(direction.framing, packet_bytes)
    limits = direction.queue.limit_packets, direction.queue.limit_bytes
    return min(limit // unit for limit, unit in zip(limits, (1, size), strict=True) if limit is not None)


def _crosses(plan: Plan, load: Load, path: NetworkPath) -> bool:
    """Return whether a load goes through the bottleneck of the path, the same way."""
    return path.slowest in Forwarding(plan).path(load.source.name, load.sink.name).hops


def _with(estimate: Estimate, truth: float | None) -> Estimate:
    return replace(estimate, truth=truth)
