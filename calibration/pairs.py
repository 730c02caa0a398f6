"""Pairs of hosts: the base RTT and what TCP gets through. Pure.

In: a pair's expectation and the probes' results. Out: its rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ewan.calibration import budget, statistic
from ewan.calibration.expectation import BYTE_NS, PairExpectation, own_ns
from ewan.calibration.hints import SMALLER
from ewan.calibration.judge import ArrivedFlow, Judge, ProbeResults, dither_note, exact, rate_text, rounding_ns, why_not
from ewan.calibration.probing import PROBE_BYTES, ProbePlan, mtu_sizes, mtu_stream
from ewan.calibration.tolerances import Tolerances
from ewan.calibration.uncertainty import Components, enough_for, recorded, rectangular
from ewan.labs.base.units.shown import written
from ewan.labs.record import Row
from ewan.labs.runtime.probe_documents import StreamResult, TcpResult

BUSY_RATIO = 0.05
"""Share of idle CPU time below which the hosts, and not the link, limit a transfer."""
BY_CHANCE = 1e-6
"""The probability below which an event counts as not happening by chance."""


def pair_rows(
    pair: PairExpectation,
    judge: Judge,
    probing: ProbePlan,
    results: ProbeResults,
    bounds: Tolerances,
    waking_ns: float = 0.0,
) -> Iterator[Row]:
    """The base RTT of a pair and, where a transfer was planned for it, its TCP goodput. `waking_ns`: the standard
    uncertainty of a round trip because its links sleep."""
    stream = results.streams.get(("rtt", pair.key))
    base = pair.round_trip_ns(PROBE_BYTES)
    why = probing.skipped.get((pair.key, "base RTT")) or why_not(results, "rtt", pair.key)
    if why or stream is None:
        yield judge.missing("base RTT", "ns", base, why or "not probed")
    elif stream.delay is None:
        lost = f"no answer to {stream.sent_packets} packets"
        if (1 - pair.answered(PROBE_BYTES)) ** stream.sent_packets > BY_CHANCE:
            yield judge.missing("base RTT", "ns", base, f"{lost}, most of which are lost on purpose")
        else:
            yield judge.dead("base RTT", "ns", base, lost)
    else:
        parts = [own_ns(*each, PROBE_BYTES) for each in pair.ways]
        parts += [exit_.serialisation_ns(PROBE_BYTES) for exit_ in pair.exits]
        near = len(pair.links) * max(bounds.rtt_ns, bounds.delay_share * base)
        z = statistic.quantile(bounds.confidence, 10)
        wander = z * pair.wander_ns(stream.received_packets)
        value = stream.delay.p50_ns if pair.deviation_ns == 0 else stream.delay.mean_ns
        note = "; ".join(
            part for part in (f"of {stream.received_packets} round trips", dither_note(pair.dither_ns)) if part
        )
        slower = pair.dither_ns + pair.wakeups * bounds.switch_ns
        rounding = rounding_ns(parts)
        tolerance = near + wander, max(near, rounding) + wander + slower
        allowed: Components = {
            "dither": rectangular(float(pair.dither_ns)),
            "resolution": rectangular(rounding) if exact(bounds) else 0.0,
            "waking": waking_ns,
        }
        yield _round_trips(pair, judge, stream, base, value, tolerance, note, allowed)
    yield from _path_mtu(pair, judge, results)
    yield from _goodput(pair, judge, probing, results, bounds)


def _path_mtu(pair: PairExpectation, judge: Judge, results: ProbeResults) -> Iterator[Row]:
    """The largest packet that was answered, of those that were sent (RFC 6349, section 3.1)."""
    sizes = mtu_sizes(pair)
    found = {size: results.streams.get(("rtt", mtu_stream(pair, size))) for size in sizes}
    asked = {size: stream for size, stream in found.items() if stream is not None}
    if not pair.lossless:
        return
    if not asked:
        if why := results.failed_streams.get(("rtt", mtu_stream(pair, sizes[0]))):
            yield judge.missing("path MTU", "bytes", sizes[0], why)
        return
    passed = [size for size, stream in asked.items() if stream.received_packets]
    if not passed:
        yield judge.dead("path MTU", "bytes", sizes[0], "no packet of any size was answered")
        return
    note = "" if passed[0] == sizes[0] else f"{SMALLER}: of {sizes[0]} bytes none was answered"
    # Nothing else that is known of the links makes large packets vanish, and lets small ones pass.
    alone = dataclasses.replace(judge, cause="", machine="")
    yield alone.row("path MTU", "bytes", sizes[0], max(passed), 0.0, note)


def shortened(pairs: Sequence[PairExpectation], results: ProbeResults) -> dict[str, int]:
    """Links on paths that let pass less than they should: the largest packet that did (bytes), by the link's name."""
    found: dict[str, int] = {}
    whole: set[str] = set()
    for pair in pairs:
        sizes = mtu_sizes(pair)
        streams = [results.streams.get(("rtt", mtu_stream(pair, size))) for size in sizes]
        passed = [size for size, each in zip(sizes, streams, strict=True) if each and each.received_packets]
        if not passed or not pair.lossless:
            continue
        if passed[0] == sizes[0]:
            whole |= set(pair.links)
        else:
            found |= dict.fromkeys(pair.links, max(passed))
    return {link: size for link, size in found.items() if link not in whole}


def with_mtu(why: str, packet_bytes: int, short: int | None) -> str:
    """Why something was not measured; with the path's MTU where that is why its packets did not come through."""
    if short is None or packet_bytes <= short:
        return why
    return f"{why}: {SMALLER}: of {packet_bytes} bytes none passes, of {short} they do"


def _round_trips(
    pair: PairExpectation,
    judge: Judge,
    stream: StreamResult,
    base: float,
    value: float,
    tolerance: tuple[float, float],
    note: str,
    allowed: Components,
) -> Row:
    if pair.deviation_ns:
        parts, _ = budget.delay_mean(
            base, pair.wander_ns(stream.received_packets), stream.received_packets, judge.instrument
        )
        return judge.drawn("base RTT", "ns", base, value, tolerance, recorded({**parts, **allowed}), note=note)
    ordered = sorted(stream.delays_ns or ())
    known = budget.round_trip(ordered, 2 * len(pair.links), judge.instrument)
    if known is None:
        return judge.few("base RTT", "ns", base, value, stream.received_packets, enough_for(0.5))
    parts, samples = known
    return judge.row(
        "base RTT",
        "ns",
        base,
        value,
        tolerance,
        note,
        components=parts,
        samples=samples,
        steady=True,
        allowed=allowed,
    )


def _goodput(
    pair: PairExpectation, judge: Judge, probing: ProbePlan, results: ProbeResults, bounds: Tolerances
) -> Iterator[Row]:
    name = f"tcp {pair.key}"
    if name in results.failures:
        yield judge.missing("TCP goodput", "bit/s", pair.goodput_bps, results.failures[name])
    elif (pair.key, "TCP goodput") in probing.skipped:
        yield judge.missing("TCP goodput", "bit/s", pair.goodput_bps, probing.skipped[pair.key, "TCP goodput"])
    elif name in results.transfers:
        found = results.transfers[name]
        transfer = _busiest_part(found) if isinstance(found, ArrivedFlow) else _judged_part(found)
        if isinstance(transfer, str):
            yield judge.missing("TCP goodput", "bit/s", pair.goodput_bps, transfer)
        else:
            yield _transfer(pair, judge, transfer, bounds)


@dataclass(frozen=True, slots=True)
class _JudgedTransfer:
    """The part of a transfer that is judged: `steady_ns` of it, in which its window was never below
    `window_segments`."""

    congestion: str | None
    retransmitted_segments: int | None
    segment_bytes: int
    goodput_bps: float
    steady_ns: int
    window_segments: int
    idle_ratio: float


def _judged_part(found: TcpResult) -> _JudgedTransfer:
    return _JudgedTransfer(
        found.congestion,
        found.retransmitted_segments,
        found.segment_bytes,
        found.goodput_bps,
        found.steady_ns,
        _least_window(((each.time_ns, each.cwnd_segments) for each in found.series), found.steady_ns),
        found.idle_ratio,
    )


def _least_window(windows: Iterable[tuple[int, int]], steady_ns: int) -> int:
    """Goodput in the last `steady_ns`; `windows`: each with its time."""
    seen = list(windows)
    return min(window for time_ns, window in seen if time_ns >= seen[-1][0] - steady_ns)


def _busiest_part(flow: ArrivedFlow) -> _JudgedTransfer | str:
    """A bulk flow as a transfer: the goodput of that part of it, as long as its probe says, in which most arrived; or
    why there is none."""
    told, bins = flow.told, flow.arrived
    if told.connected_ns is None and not told.error:
        waited = written((told.ended_ns or 0) - (told.started_ns or 0), "ns", 3)
        return f"its connection was not answered within {waited}: nothing comes back"
    series = told.series or ()
    width_ns = bins[1][0] - bins[0][0] if len(bins) > 1 else 0
    count = math.ceil(flow.busy_ns / width_ns) if width_ns else 0
    if told.error or told.segment_bytes is None or not series or not 0 < count < len(bins):
        return told.error or "it was too short to tell"
    came = list(accumulate((size for _, size in bins), initial=0))
    last = max(range(count, len(came)), key=lambda last: came[last] - came[last - count])
    end_ns, busy_ns = bins[last - 1][0], count * width_ns
    seen = [sample for sample in series if end_ns - busy_ns <= sample.time_ns <= end_ns] or series
    goodput = (came[last] - came[last - count]) * BYTE_NS / busy_ns
    window = _least_window(((each.time_ns, each.cwnd_segments) for each in seen), busy_ns)
    return _JudgedTransfer(
        told.congestion, told.retransmitted_segments, told.segment_bytes, goodput, busy_ns, window, 1.0
    )


def _transfer(pair: PairExpectation, judge: Judge, transfer: _JudgedTransfer, bounds: Tolerances) -> Row:
    """More goodput than the headers leave of the rate is outside: the link does not limit.

    Less is judged only where the sender's window filled the path. A window that losses kept small, or that still grew,
    tells of TCP and not of the link: the row is shown only.
    """
    measured = transfer.goodput_bps
    note = f"{transfer.congestion}, {transfer.retransmitted_segments} segments retransmitted"
    above, below = bounds.goodput_above * pair.goodput_bps, bounds.goodput_below * pair.goodput_bps
    allowed: Components = {}
    # What a policer's bucket holds passes above its rate.
    above += pair.bucket_bytes * BYTE_NS / transfer.steady_ns
    if exact(bounds):
        # Counted are whole segments, which come earlier or later by dither and jitter, and what a bucket lets pass.
        one = transfer.segment_bytes * BYTE_NS / transfer.steady_ns
        passes = max(direction.burst_bytes for direction in pair.directions) * BYTE_NS / transfer.steady_ns
        edges = 2 * one + passes + pair.goodput_bps * pair.spread_ns / transfer.steady_ns
        allowed = {"window edges": rectangular(edges)}
        above += edges
        below += 2 * one
    window = transfer.window_segments
    # Between neighbours of a switch nothing takes time in the live clock's plan.
    carried = window * transfer.segment_bytes * BYTE_NS / max(pair.round_trip_ns(PROBE_BYTES), 1)
    if measured < pair.goodput_bps - below and (not pair.goodput_fair or carried < pair.goodput_bps):
        why = f"its window was {window} segments" if pair.goodput_fair else "loss, jitter or a queue below the BDP"
        return judge.shown("TCP goodput", "bit/s", pair.goodput_bps, measured, f"{note}; kept below: {why}")
    if measured < pair.goodput_bps - below and transfer.idle_ratio < BUSY_RATIO and not exact(bounds):
        why = f"above this host's reach: its CPUs were busy for {1 - transfer.idle_ratio:.0%} of the time"
        return judge.missing("TCP goodput", "bit/s", pair.goodput_bps, f"{why} and carried {rate_text(measured)}")
    parts, samples = budget.goodput(measured, transfer.steady_ns, transfer.segment_bytes, judge.instrument)
    limits = below, above
    return judge.row(
        "TCP goodput",
        "bit/s",
        pair.goodput_bps,
        measured,
        limits,
        note,
        components=parts,
        samples=samples,
        allowed=allowed,
    )
