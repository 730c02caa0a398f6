"""Measures for `ewan measure lab TOPOLOGY` more than a verification does: all links loaded at once, and TCP by RFC
6349.

In: a lab that is up, its expectations. Out: rows of its certificate. In the order of RFC 6349 (path MTU, RTT,
bottleneck without TCP; the verification has those) and RFC 2544: each link by itself, then all at once,
then TCP, several times, with the median and the spread.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from ewan.calibration import budget
from ewan.calibration.expectation import (
    BYTE_NS,
    ENOUGH,
    Expectations,
    LinkExpectation,
    PairExpectation,
    framed_bytes,
    serialisation_ns,
)
from ewan.calibration.judge import Judge, offered_bps
from ewan.calibration.path import error_of, streams_of
from ewan.calibration.probe import LiveProbes
from ewan.calibration.probing import MS, PROBE_BYTES, ProbePlan, packet_stream, plan_probes
from ewan.calibration.spinner import LinkFacts
from ewan.calibration.tolerances import Tolerances
from ewan.calibration.uncertainty import Instrument, recorded
from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import Row
from ewan.labs.runtime.probe_documents import ProbeAnswer, StreamResult, TcpProbe, TcpResult

TOGETHER = ", all links loaded"
"""Follows a quantity's name in its row."""
REPEATS = 3
SENDING_NS, SKIP_NS, DRAIN_NS = 500 * MS, 150 * MS, 50 * MS
MOST_ABOVE, LEAST_ABOVE = 2.0, 1.1
"""Times its rate that each link is offered, as far as this host can: what waits then bridges pauses of the senders,
which share the CPUs that no link takes."""
LATE_INSTANTS = 4
"""Instants of the probes by which the first packet of a busy time may have come late and look like one that waited.
"""
MOST_HOPS = 3
"""The number of longest links that stand for a path."""
MOST_DRAIN_NS = 5_000 * MS
Measure = Callable[[ProbePlan], tuple[ProbeAnswer, Mapping[str, LinkFacts]]]
"""Sends probes; their answer, and what the links counted meanwhile."""


def drained_ns(links: Sequence[LinkExpectation]) -> float:
    """The time for which the packets that a transfer leaves behind are on their way: in the longest queue, and as
    resets that answer packets after the receiver has closed."""
    paths = 2 * sum(sorted((link.line.mean_ns for link in links), reverse=True)[:MOST_HOPS])
    return min(max((_room_ns(link) for link in links), default=0.0) + paths, MOST_DRAIN_NS)


def _room_ns(link: LinkExpectation) -> float:
    return link.queue_packets(link.mtu_bytes) * serialisation_ns(link.direction, link.mtu_bytes)


def rows(
    expected: Expectations, lab: str, measure: Measure, bounds: Tolerances, instrument: Instrument, holds_s: int
) -> Iterator[Row]:
    """All of them."""
    yield from together(expected.links, lab, measure, bounds, instrument, holds_s)
    yield from transfers(expected, lab, measure, instrument, holds_s)


def together(
    links: Sequence[LinkExpectation],
    lab: str,
    measure: Measure,
    bounds: Tolerances,
    instrument: Instrument,
    holds_s: int,
) -> Iterator[Row]:
    """Every link that has a rate of its own loaded at once, both ways."""
    told = [link for link in links if not link.untold("rate") and not link.senders and _alone(link)]
    if len(told) < 2:
        return
    packets_per_s = sum(NS_PER_SECOND / serialisation_ns(link.direction, link.mtu_bytes) for link in told)
    share = max(LEAST_ABOVE, min(MOST_ABOVE, LiveProbes().budget.packets_per_second / packets_per_s))
    streams = []
    for link in told:
        interval = serialisation_ns(link.direction, link.mtu_bytes) / share
        count = max(int(SENDING_NS / interval), 3)
        stream = packet_stream(link.key, link.ends, lab, link.mtu_bytes, interval, count)
        streams.append(replace(stream, skip_ns=SKIP_NS))
    probing = ProbePlan()
    longest = max(link.line.mean_ns + 5 * link.line.deviation_ns for link in told)
    full = max(_room_ns(link) for link in told)
    probing.add("saturate", "all links at once", streams, longest + min(full, SENDING_NS) + DRAIN_NS)
    answer, facts = measure(probing)
    (result,) = answer.results
    found = {stream.name: stream for stream in streams_of(result)}
    for link in told:
        own = facts.get(link.key, LinkFacts())
        judge = Judge(link.link, link.name, own.cause(), "", instrument, holds_s)
        yield _loaded(link, judge, found.get(link.key), bounds, error_of(result))
        if own.release_p99_ns is not None and (known := budget.release(own, 0.99)) is not None:
            parts, samples = known
            name = f"release error p99{TOGETHER}"
            limits = 0.0, float(bounds.release_p99_ns)
            yield judge.row(name, "ns", 0, own.release_p99_ns, limits, components=parts, samples=samples)


def _alone(link: LinkExpectation) -> bool:
    """Not the second direction of a medium that both take in turns, which cannot be loaded at once."""
    return not (link.direction.half_duplex and link.name == "backward")


def _loaded(link: LinkExpectation, judge: Judge, stream: StreamResult | None, bounds: Tolerances, error: str) -> Row:
    name, rate = f"rate{TOGETHER}", link.direction.rate_bps
    if stream is None:
        return judge.missing(name, "bit/s", rate, error or "not probed")
    framed = framed_bytes(link.direction.framing, stream.packet_bytes)
    offered = offered_bps(stream, framed)
    steady = stream.steady
    if steady is None or steady.packets < 8:
        return judge.missing(name, "bit/s", rate, "too few packets arrived in the time there was")
    packets, window = steady.packets, steady.fitted_window_ns
    late = 0.0
    if link.line.constant and packets * framed * BYTE_NS < (1 - bounds.rate_share) * rate * window:
        # A link that is too slow is never idle; one whose sender paused for longer than its queue held out was.
        packets, window = steady.busy_packets, steady.busy_window_ns
        late = LATE_INSTANTS * bounds.instant_ns
        if packets < 8 or window < steady.window_ns / 2:
            return judge.missing(name, "bit/s", rate, "this host's senders paused for longer than its queue holds out")
    measured = packets * framed * BYTE_NS / window
    if offered * link.through(stream.packet_bytes) < ENOUGH * rate:
        return judge.missing(name, "bit/s", rate, f"this host could offer {offered / rate:.0%} of it to all at once")
    ends = late + (0.0 if link.line.constant else 2 * link.line.spread_ns)
    parts, samples = budget.rate(measured, window, packets, ends_ns=ends, others=0.0, instrument=judge.instrument)
    tolerance = rate * bounds.rate_share
    return judge.row(name, "bit/s", rate, measured, tolerance, components=parts, samples=samples, steady=True)


def transfers(
    expected: Expectations, lab: str, measure: Measure, instrument: Instrument, holds_s: int
) -> Iterator[Row]:
    """The metrics of RFC 6349, section 4, of each transfer of a verification, repeated: median, and the standard
    uncertainty of it by the spread."""
    wanted = plan_probes(expected, lab, LiveProbes()).probes
    asked = [probe for probe in wanted if isinstance(probe, TcpProbe)]
    found: dict[str, list[TcpResult]] = {}
    for number in range(REPEATS):
        for probe in asked:
            probing = ProbePlan()
            probing.probes.append(replace(probe, name=f"{probe.name}, {number + 1} of {REPEATS}"))
            (result,) = measure(probing)[0].results
            if isinstance(result, TcpResult):
                found.setdefault(probe.name, []).append(result)
    for pair in expected.pairs:
        results = found.get(f"tcp {pair.key}", [])
        if len(results) == REPEATS:
            yield from _metrics(pair, Judge(pair.key, "", "", "", instrument, holds_s), results)


def _metrics(pair: PairExpectation, judge: Judge, results: Sequence[TcpResult]) -> Iterator[Row]:
    base = pair.round_trip_ns(PROBE_BYTES)
    for name, configured, values in (
        ("transfer time ratio", 1.0, [pair.goodput_bps / max(each.goodput_bps, 1.0) for each in results]),
        ("TCP efficiency", 1.0, [_efficiency(each) for each in results]),
        ("buffer delay", None, [_round_trip_ns(each) / base - 1 for each in results]),
    ):
        middle, spread = statistics.median(values), statistics.stdev(values)
        note = f"median of {len(values)}, {min(values):.4g} to {max(values):.4g}"
        row = judge.shown(name, "ratio", configured, middle, note)
        # The median of a few normal values is as uncertain as 1.25 times their mean.
        known = recorded({"finite sample": 1.2533 * spread / len(values) ** 0.5})
        yield replace(row, uncertainty=known, holds_s=judge.holds_s)


def _efficiency(result: TcpResult) -> float:
    """Segments that were sent once, of all that were sent (RFC 6349, section 4.2)."""
    last = result.series[-1]
    sent = last.delivered_segments + last.retransmitted_segments
    return 1.0 - float(last.retransmitted_segments / max(sent, 1))


def _round_trip_ns(result: TcpResult) -> float:
    """Mean of the smoothed RTT over the part of the transfer that is judged (section 4.3)."""
    from_ns = result.series[-1].time_ns - result.steady_ns
    return statistics.fmean(sample.srtt_ns for sample in result.series if sample.time_ns >= from_ns)
