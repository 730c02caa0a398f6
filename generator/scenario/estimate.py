"""A rough estimate of the time that a run will take: for progress, and for the time after which something must be
wrong.

Comes in: the transfers with their ends, their sockets' options, and the plan's paths. Goes out: nanoseconds from T0.
Volumes share links as a fluid would, none faster than a window a round trip; a transfer that ends by the clock ends
then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from ewan.generator.scenario.fields import ScenarioStep
from ewan.generator.scenario.flows import FlowSettings, packet_interval, whole_bytes, written_bps
from ewan.generator.scenario.laws import mean
from ewan.labs.base.units import NS_PER_SECOND, mean_rate_bps, time_for
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Hop
from ewan.labs.record.traffic import usual

# A run that takes this many times what rates and volumes suggest, or a minute, is taken for one that never ends.
PATIENCE = 10
LEAST_LONGEST_NS = 60 * NS_PER_SECOND
AFTER_STOP_NS = 5 * NS_PER_SECOND


@dataclass(frozen=True, slots=True)
class FlowDemand:
    """One transfer: `pause_ns` passes whatever the network does; `counted`: it ends by itself, unless it is stopped
    before."""

    start_ns: int
    stop_ns: int | None = None
    bytes: int = 0
    pause_ns: int = 0
    counted: bool = False
    rate_bps: int = 0
    hops: tuple[Hop, ...] = ()


def load(
    forwarding: Forwarding,
    step: ScenarioStep,
    settings: FlowSettings,
    source: str,
    sink: str,
    start_ns: int,
    stop_ns: int | None,
    paced_bps: int | None = None,
) -> FlowDemand:
    """The demand of one transfer of a step on the links of its path; `paced_bps`: the rate to which its source is
    limited."""
    rtt_ns = forwarding.rtt_ns(source, sink)
    amount, pause_ns = _demand(step, rtt_ns)
    counted = step.kind == "messages" or bool(amount or getattr(step.work, "count", None))
    # What is counted of requests are the answers.
    path = forwarding.path(*((sink, source) if step.kind == "requests" else (source, sink)))
    rate = path.bottleneck_bps or NS_PER_SECOND
    rate = rate if paced_bps is None or step.kind == "requests" else min(rate, paced_bps)
    if step.kind in ("bulk", "bidirectional", "quic"):
        rate = min(rate, written_bps(step.work) or rate)
    window = _window_bytes(settings)
    if window is not None and rtt_ns:
        rate = max(1, min(rate, mean_rate_bps(window, rtt_ns)))
    return FlowDemand(start_ns, stop_ns, round(amount), round(pause_ns), counted, rate, path.hops)


def _window_bytes(settings: FlowSettings) -> int | None:
    """The bytes that all streams of a transfer may have in flight by their sockets' options; None: as many as the path
    takes."""
    named = [getattr(settings.socket, f"{key}_bytes") for key in ("window", "send_buffer", "receive_buffer")]
    return min((size * settings.streams for size in named if size is not None), default=None)


def _demand(step: ScenarioStep, rtt_ns: int) -> tuple[float, float]:
    """Bytes, and the time that passes between them."""
    work = step.work
    match step.kind:
        case "quic" if work.http3 is not None:
            return whole_bytes(work) or 0, (2 + (work.http3.count or 0) / work.http3.parallel) * rtt_ns
        case "bulk" | "bidirectional" | "quic":
            return whole_bytes(work) or 0, 2 * rtt_ns
        case "arrivals":
            count = work.count or 0
            return count * mean(work.size), count * mean(work.interval)
        case "requests":
            count = work.count or 0
            return count * mean(work.response), count * (mean(work.think) + 2 * rtt_ns)
        case "udp":
            each = mean(work.interval) if work.interval else usual(packet_interval(step))
            share = 1.0 if work.on is None else mean(work.on) / (mean(work.on) + mean(work.off))
            return 0, (work.count or 0) * each / share
        case "messages":
            return 0, work.iterations * (mean(work.compute) + 2 * rtt_ns)
        case "media" | "run":
            return 0, 0
        case never:
            assert_never(never)


def expected_ns(forwarding: Forwarding, loads: Sequence[FlowDemand]) -> int:
    """The end of the last transfer, in ns from T0.

    No transfer ends before it would without others on its path, and none of a link before all of them have crossed
    it."""
    ends = [0]
    crossing: dict[Hop, list[FlowDemand]] = defaultdict(list)
    for each in loads:
        alone = each.start_ns + each.pause_ns + (time_for(each.bytes, each.rate_bps) if each.bytes else 0)
        ends.append(_until(each, alone))
        for hop in each.hops:
            crossing[hop].append(each)
    for hop, those in crossing.items():
        volume, rate_bps = sum(each.bytes for each in those if each.stop_ns is None), forwarding.rate_bps(hop)
        if volume and rate_bps:
            ends.append(min(each.start_ns for each in those) + time_for(volume, rate_bps))
    return max(ends)


def latest_ns(loads: Sequence[FlowDemand], begin_ns: int) -> int:
    """The approximate end of a step's transfers, for steps that start after it: the stop of the last one if it has one,
    else its end without others on its path."""
    ends = [begin_ns]
    for each in loads:
        alone = each.start_ns + each.pause_ns + (time_for(each.bytes, each.rate_bps) if each.bytes else 0)
        ends.append(alone if each.stop_ns is None else each.stop_ns)
    return max(ends)


def _until(each: FlowDemand, end_ns: int) -> int:
    """The end of a transfer (ns): its stop, or `end_ns` if it has no stop or if it has a volume or a count and that is
    earlier."""
    if each.stop_ns is None:
        return end_ns
    return min(each.stop_ns, end_ns) if each.counted else each.stop_ns


def longest_ns(expected: int, loads: Sequence[FlowDemand]) -> int:
    """The time at which a run is ended that should have ended long ago; shortly after the last stop where every
    transfer has one."""
    stops = [each.stop_ns for each in loads]
    known = [stop for stop in stops if stop is not None]
    if len(known) == len(stops):
        return max(known, default=0) + AFTER_STOP_NS
    return max([PATIENCE * expected, LEAST_LONGEST_NS, *(stop + AFTER_STOP_NS for stop in known)])
