"""Expectations and results → verdicts. Pure.

In: what the plan says (`expect`), what the probes found (the answer of `ewan-node probe`) and what the link says
counted itself (`spinner`). Out: one row per link, direction and quantity. A value that was not or could not be
measured has a row that says why. No row is left out, and no value is estimated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from ewan.calibration import budget, hints, statistic
from ewan.calibration.expectation import BYTE_NS, Expectations, LinkExpectation, framed_bytes, own_ns, serialisation_ns
from ewan.calibration.judge import (
    ArrivedFlow,
    Judge,
    ProbeResults,
    dither_note,
    exact,
    of_link,
    offered_bps,
    rate_text,
    rounding_ns,
    why_not,
)
from ewan.calibration.loss_rows import loss_rows
from ewan.calibration.pairs import pair_rows, shortened, with_mtu
from ewan.calibration.probing import PROBE_BYTES, ProbePlan
from ewan.calibration.spinner import CHANGED, LinkFacts
from ewan.calibration.tolerances import Tolerances
from ewan.calibration.uncertainty import Components, Instrument, enough_for, expanded, recorded, rectangular
from ewan.labs.base.units.shown import written
from ewan.labs.record import Row
from ewan.labs.runtime.probe_documents import ProbeAnswer, SaturateProbe, StreamResult

NEARLY = 0.15
"""The tolerance of the hint that the delay line was counted, as a share of its content: senders pause now and then."""
FEW = "too few packets arrived in the time there was"
ENOUGH_TELLING = 10
"""Independent delays that tell of their mean; correlated ones count as fewer."""
LEAST_FOR_MEAN = 20
LEAST_FOR_TAIL = 100
"""The packets of which the slowest one in a hundred is known."""
HOLDS_S = 86_400
"""A day: the time for which a live lab's certificate holds, if lab and host do not change. Then the host's clock may
have another pace, and its other programs are others."""


def compare(
    expected: Expectations,
    probing: ProbePlan,
    answer: ProbeAnswer,
    facts: Mapping[str, LinkFacts],
    tolerances: Tolerances | None = None,
    machine: str = "",
    instrument: Instrument | None = None,
    flows: Sequence[ArrivedFlow] = (),
) -> tuple[Row, ...]:
    """`facts` by the link's key ("core forward"). `machine`: what disturbed all of this machine meanwhile.

    `instrument`: what the probes add in the live clock. `flows`: the transfers of the virtual clock.
    """
    bounds = tolerances or Tolerances()
    results = ProbeResults.of(probing, answer, flows)
    shared = (None, None) if exact(bounds) else (instrument or Instrument(), HOLDS_S)
    count = max(len(expected.links), 1)
    rows: list[Row] = []
    others = {(link.link, link.name): link for link in expected.links}
    short = shortened(expected.pairs, results)
    for link in expected.links:
        other = others.get((link.link, "backward" if link.name == "forward" else "forward"))
        own = facts.get(link.key, LinkFacts())
        cause = "; ".join(cause for cause in (own.cause(), link.cause) if cause)
        judge = Judge(link.link, link.name, cause, machine, *shared)
        punctual = own.release_p50_ns is not None and own.release_p50_ns <= bounds.release_p50_ns
        rows += _delay(link, other, judge, results, bounds, count, punctual, own.wake_up_ns)
        # Only a link of our own says how late it was.
        if link.backend == "user" and (link.key in facts or not exact(bounds)):
            rows += _release(judge, own, bounds)
        if own.shares_cpu:
            rows.append(judge.unknown("CPU shared", "what another lab does on it is not known: ewan down it, or cpus:"))
        if own.too_long_packets:
            rows.append(judge.row("frames above the MTU", "count", 0, own.too_long_packets, 0.0))
        near = dataclasses.replace(bounds, rate_share=0.001, queue_packets=2) if link.bucket else bounds
        rows += _throughput(link, other, judge, probing, results, near, count, short.get(link.link))
        rows += loss_rows(link, judge, results, bounds, count)
        rows += _queue(link, judge, probing, results, near, short.get(link.link))
    for pair in expected.pairs:
        causes = [
            facts[f"{name} {way}"].cause()
            for name in pair.links
            for way in ("forward", "backward")
            if f"{name} {way}" in facts
        ]
        judge = Judge(pair.key, "", next((cause for cause in causes if cause), ""), machine, *shared)
        waking = [
            facts.get(f"{name} {way}", LinkFacts()).wake_up_ns for name in pair.links for way in ("forward", "backward")
        ]
        rows += pair_rows(pair, judge, probing, results, bounds, math.hypot(*map(rectangular, waking)))
    return tuple(rows)


def _delay(
    link: LinkExpectation,
    other: LinkExpectation | None,
    judge: Judge,
    results: ProbeResults,
    bounds: Tolerances,
    count: int,
    punctual: bool,
    wake_up_ns: int,
) -> Iterator[Row]:
    stream = results.streams.get(("delay", link.key))
    size = PROBE_BYTES if stream is None else stream.packet_bytes
    base = link.delay_ns(size)
    first = "delay p50" if link.line.constant else "delay mean"
    why = why_not(results, "delay", link.key)
    if why or stream is None:
        yield judge.missing(first, "ns", base, why or "not probed")
        return
    delay, arrived = stream.delay, stream.received_packets
    if moved := link.untold("delay"):
        yield judge.missing(first, "ns", base, moved)
        if delay is not None and link.moves_all:
            yield _least_delay(link, judge, stream, delay.min_ns, bounds)
        elif delay is not None:
            yield judge.shown("delay min", "ns", None, delay.min_ns, f"of {arrived} packets")
        return
    if delay is None or arrived < 3:
        lost = f"{arrived} of {stream.sent_packets} packets arrived"
        if delay is None and link.loss.probability < 0.5:
            yield judge.dead(first, "ns", base, f"nothing came through: {lost}", judge.cause)
        else:
            yield judge.missing(first, "ns", base, lost)
        return
    near = max(bounds.delay_ns, bounds.delay_share * base)
    clocks_ns = stream.clocks_ns or 0
    # A copy leaves right after its original.
    copy = own_ns(link.backend, link.direction, size) if link.duplicates else 0.0
    rounded = rounding_ns(_own_parts(link, size))
    allowed: Components = {
        "dither": rectangular(float(link.dither_ns)),
        "copies": rectangular(copy),
        "resolution": rectangular(rounded) if exact(bounds) else 0.0,
        "waking": rectangular(wake_up_ns),
    }
    above = max(near, rounded) + link.dither_ns + copy + link.wakeups * bounds.switch_ns
    if link.line.constant:
        step = results.clock_steps["delay", link.key]

        def quantile(
            share: float, value: int, tolerance: tuple[float, float], note: str = "", steady: bool = False
        ) -> Row:
            name = f"p{round(100 * share)}"
            known = budget.delay_quantile(sorted(stream.delays_ns or ()), share, judge.instrument, step, clocks_ns)
            if known is None or (share > 0.5 and arrived < LEAST_FOR_TAIL):
                enough = LEAST_FOR_TAIL if judge.instrument is None else enough_for(share)
                return judge.few(f"delay {name}", "ns", base, value, arrived, enough)
            parts, samples = known
            hint, told = "", judge
            if steady:
                hint = hints.delay(link, other, size, value, max(tolerance))
                if punctual and CHANGED not in judge.cause:
                    # What took the CPU for a while did not make half of the packets late.
                    hint, told = hint or hints.PUNCTUAL, dataclasses.replace(judge, cause=link.cause, machine="")
            return told.row(
                f"delay {name}",
                "ns",
                base,
                value,
                tolerance,
                note,
                components=parts,
                samples=samples,
                steady=steady,
                hint=hint,
                allowed=allowed,
            )

        yield quantile(0.5, delay.p50_ns, (near, above), dither_note(link.dither_ns), steady=True)
        if link.direction.displace_ppb:
            yield judge.missing("delay p99", "ns", base, "it displaces packets, which then are later")
            return
        behind = bounds.other_bytes * BYTE_NS / link.direction.rate_bps
        yield quantile(0.99, delay.p99_ns, (near, above + bounds.delay_p99_ns + behind))
        if exact(bounds):
            yield judge.row("delay min", "ns", base, delay.min_ns, (near, above), allowed=allowed)
            note = f"of {arrived} packets"
            yield judge.row("delay max", "ns", base, delay.max_ns, (near, above + behind), note, allowed=allowed)
        else:
            yield judge.shown("delay max", "ns", base, delay.max_ns, f"of {arrived} packets")
        return
    telling = arrived / link.line.dispersion
    needed = max(round(ENOUGH_TELLING * link.line.dispersion), LEAST_FOR_MEAN)
    if arrived < needed:
        yield judge.few("delay mean", "ns", base, delay.mean_ns, arrived, needed)
        return
    z = statistic.quantile(bounds.confidence, 2 * count)
    deviation = link.line.wander_ns(arrived)
    wander = z * deviation
    note = f"of {arrived} packets" + ("" if link.line.dispersion == 1 else f", worth {telling:.0f} independent ones")
    parts, _ = budget.delay_mean(base, deviation, telling, judge.instrument, clocks_ns)
    limits = near + wander, above + wander
    yield judge.drawn("delay mean", "ns", base, delay.mean_ns, limits, recorded({**parts, **allowed}), note=note)
    own = own_ns(link.backend, link.direction, size)
    if link.line.deviation_ns < 5 * bounds.delay_ns:
        yield judge.missing("delay distribution", "ratio", 0, "it is too narrow for this host's own wander")
        return
    # The best fit within the tolerance for a fixed offset: the shape is judged here, the place above.
    offset = max(-near - clocks_ns, min(above + clocks_ns, delay.mean_ns - base))
    values = [value - own - offset for value in stream.delays_ns or ()]
    distance = statistic.kolmogorov(values, link.line.distribution)
    limit = (
        statistic.kolmogorov_limit(telling, bounds.confidence, 2 * count) + bounds.delay_ns / link.line.deviation_ns / 5
    )
    yield judge.row("delay distribution", "ratio", 0, distance, limit, "Kolmogorov distance")


def _least_delay(
    link: LinkExpectation, judge: Judge, stream: StreamResult, measured_ns: int, bounds: Tolerances
) -> Row:
    """The least delay of a direction whose delay moves: it lies where the trace and the slots allow it."""
    least, greatest = link.least_delays_ns(stream.packet_bytes)
    near = max(bounds.delay_ns, bounds.delay_share * least)
    above = greatest - least + near + rounding_ns((least,)) + link.dither_ns + link.wakeups * bounds.switch_ns
    known = budget.delay_least(measured_ns, judge.instrument, stream.clocks_ns or 0)
    note = f"of {stream.received_packets} packets: at least this, and at most {written(greatest, 'ns')}"
    return judge.row("delay min", "ns", least, measured_ns, (near, above), note, components=known)


def _own_parts(link: LinkExpectation, packet_bytes: int) -> tuple[float, ...]:
    own = own_ns(link.backend, link.direction, packet_bytes)
    return own, *(each.serialisation_ns(packet_bytes) for each in (link.source_exit, *link.after))


def _release(judge: Judge, facts: LinkFacts, bounds: Tolerances) -> Iterator[Row]:
    if facts.release_p50_ns is None or facts.release_p99_ns is None or facts.release_max_ns is None:
        why = "the link has ended" if facts.ended else "the link gave no statistics"
        yield judge.missing("release error p50", "ns", 0, why)
        return
    for name, share, value, most in (
        ("release error p50", 0.5, facts.release_p50_ns, bounds.release_p50_ns),
        ("release error p99", 0.99, facts.release_p99_ns, bounds.release_p99_ns),
    ):
        known = budget.release(facts, share)
        if known is None:
            count = 0 if facts.release is None else facts.release.count
            yield judge.few(name, "ns", 0, value, count, enough_for(share))
            continue
        parts, samples = known
        yield judge.row(name, "ns", 0, value, (0.0, most), components=parts, samples=samples)
    yield judge.shown("release error max", "ns", 0, facts.release_max_ns, facts.disturbance())


def _starved(
    link: LinkExpectation, probing: ProbePlan, offered_bps: float, stream: StreamResult, bounds: Tolerances
) -> bool:
    """Return whether a sender got so little CPU time that less than half of its load above the link's rate arrived.
    Then a rate or a queue shows the sender's pauses."""
    asked = 0.0
    for probe in probing.probes if not exact(bounds) else ():
        for each in probe.streams if isinstance(probe, SaturateProbe) else ():
            if of_link(each.name) == link.key:
                asked += framed_bytes(link.direction.framing, each.packet_bytes) * BYTE_NS / each.interval_ns
    above = asked * link.through(stream.packet_bytes) - link.direction.rate_bps
    return offered_bps - link.direction.rate_bps < above / 2


def _carried_bps(offered_bps: float, rate_bps: float, room_ns: float, longest_gap_ns: float) -> float:
    """The least that a port of this rate and queue forwards, when senders pause and then catch up.

    Offered less than half its rate, it loses nothing. Otherwise the worst case is a sender that pauses again and again
    and sends a burst after each pause: the port then sends until its queue is empty, and is idle for the rest.
    """
    if offered_bps < rate_bps / 2:
        return offered_bps
    return min(offered_bps, rate_bps * room_ns / max(room_ns, longest_gap_ns))


def _throughput(
    link: LinkExpectation,
    other: LinkExpectation | None,
    judge: Judge,
    probing: ProbePlan,
    results: ProbeResults,
    bounds: Tolerances,
    count: int,
    short: int | None,
) -> Iterator[Row]:
    configured = link.direction.rate_bps
    stream = results.saturation(link.key)
    why = probing.skipped.get((link.key, "rate")) or why_not(results, "saturate", link.key)
    if why or stream is None:
        yield judge.missing("rate", "bit/s", configured, with_mtu(why or "not probed", link.mtu_bytes, short))
        return
    framed = framed_bytes(link.direction.framing, stream.packet_bytes)
    offered = offered_bps(stream, framed) * link.through(stream.packet_bytes)
    steady = stream.steady
    if steady is None or steady.packets < 8:
        yield judge.missing("rate", "bit/s", configured, with_mtu(FEW, stream.packet_bytes, short))
        return
    window: float
    packets: float
    packets, window = steady.packets, steady.fitted_window_ns
    through = packets * framed * BYTE_NS / window
    late = 0.0
    room = link.queue_packets(stream.packet_bytes) * serialisation_ns(link.direction, stream.packet_bytes)
    if link.wakeups and through < 0.7 * _carried_bps(offered, configured, room, stream.longest_sender_gap_ns):
        yield judge.row("rate", "bit/s", configured, through, 0.0, f"of {rate_text(offered)} offered")
        return
    if link.line.constant and link.active_queue is None and stream.longest_sender_gap_ns > room / 4:
        # A sender that pauses empties a short queue: only the time in which the link was never idle counts.
        packets, window = steady.busy_packets, steady.busy_window_ns
        # How late its first packet may have come without being distinguishable from one that waited.
        late = 4 * bounds.instant_ns + room / 10
        if packets < 8 or window < min(2_000 * bounds.instant_ns, steady.window_ns / 2):
            whose = "its" if exact(bounds) else "this host's"
            note = f"{whose} sender paused for longer than the queue holds out"
            yield judge.missing("rate", "bit/s", configured, note)
            return
    drawn = 0.0
    if link.damaged:
        # What was damaged took its time on the link, and is missing at random: no pace can be fitted to the others.
        window = steady.window_ns if packets == steady.packets else window
        if exact(bounds) and link.line.constant and not link.bucket:
            packets = steady.services
        else:
            packets, drawn = packets / (1 - link.damaged), math.sqrt(link.damaged / packets)
    measured = packets * framed * BYTE_NS / window
    ends = late + (0 if link.line.constant else 2 * link.line.spread_ns)
    # So many may be aside at one end of the window and none at the other.
    ends += link.direction.displace_packets * window / packets
    others = bounds.other_times * bounds.other_bytes / (packets * framed) + bounds.other_bps / configured
    parts, samples = budget.rate(measured, window, packets, ends_ns=ends, others=others, instrument=judge.instrument)
    tolerance = configured * bounds.rate_share
    allowed: Components = {}
    if exact(bounds):
        # What cannot be told apart, as instants are whole ns.
        edges = configured * ((2 * bounds.instant_ns + ends) / window + others)
        allowed = {"window edges": rectangular(edges)}
        tolerance += edges
    if drawn:
        allowed = {**allowed, "damaged packets": measured * drawn}
        tolerance += statistic.quantile(bounds.confidence, 2 * count) * measured * drawn
    far = tolerance + expanded(parts)
    if stream.socket_drops_packets > 0 and measured < configured - far:
        dropped = f"the probe's own receive buffer had no room for {stream.socket_drops_packets} packets"
        why = dropped if exact(bounds) else f"{dropped}: CPU too slow"
        yield judge.missing("rate", "bit/s", configured, why)
    elif link.wakeups and measured < 0.95 * min(offered, configured):
        note = f"of {rate_text(offered)} offered"
        yield judge.row("rate", "bit/s", configured, measured, tolerance, note)
    elif measured < configured - far and _starved(link, probing, offered, stream, bounds):
        reach = f"{_too_little(offered, bounds)}, too little to keep the link busy"
        yield judge.missing("rate", "bit/s", configured, "; ".join(each for each in (reach, judge.cause) if each))
    elif offered < 1.02 * configured and measured < configured + far:
        note = _too_little(offered, bounds)
        yield judge.missing("rate", "bit/s", configured, "; ".join(each for each in (note, judge.cause) if each))
    else:
        note = f"{rate_text(offered)} were offered"
        near = tolerance if exact(bounds) else expanded(parts)
        hint = hints.rate(link, other, stream.packet_bytes, measured, near)
        yield judge.row(
            "rate",
            "bit/s",
            configured,
            measured,
            tolerance,
            note,
            components=parts,
            samples=samples,
            steady=True,
            hint=hint,
            allowed=allowed,
        )


def _too_little(offered: float, bounds: Tolerances) -> str:
    """Why a link could not show its rate or its queue. In the virtual clock it is the method, and never the host."""
    if exact(bounds):
        return f"its senders offered {rate_text(offered)}"
    return f"above this host's reach: it could offer {rate_text(offered)}"


def _unqueued_ns(link: LinkExpectation, stream: StreamResult, alone: StreamResult | None) -> float:
    """The delay (ns) of a packet that does not wait, in a stream that fills the queue. It is the delay of the stream's
    first packet, which is late if a CPU is taken away just then, or that of lone packets of another size (`alone`),
    whichever is less."""
    assert stream.delay is not None
    first = float(stream.delay.min_ns)
    if alone is None or alone.delay is None:
        return first
    longer = link.delay_ns(stream.packet_bytes) - link.delay_ns(alone.packet_bytes)
    return min(first, float(alone.delay.p50_ns) + longer)


def _queue(
    link: LinkExpectation,
    judge: Judge,
    probing: ProbePlan,
    results: ProbeResults,
    bounds: Tolerances,
    short: int | None,
) -> Iterator[Row]:
    stream = results.saturation(link.key)
    size = link.mtu_bytes if stream is None else stream.packet_bytes
    framed = framed_bytes(link.direction.framing, size)
    configured = link.queue_packets(size) * framed
    why = probing.skipped.get((link.key, "queue limit")) or why_not(results, "saturate", link.key)
    if why or stream is None:
        yield judge.missing("queue limit", "bytes", configured, with_mtu(why or "not probed", size, short))
        return
    rate = link.direction.rate_bps
    offered = offered_bps(stream, framed) * link.through(stream.packet_bytes)
    steady = stream.steady
    if steady is None or steady.packets < 8:
        yield judge.missing("queue limit", "bytes", configured, with_mtu(FEW, size, short))
        return
    own = serialisation_ns(link.direction, size)
    alone = results.streams.get(("delay", link.key))
    clocks_ns = (stream.clocks_ns or 0) + ((alone and alone.clocks_ns) or 0)
    # What others have in the queue may fill one more place than it has bytes for: the wait is rounded up to packets.
    slack = bounds.queue_packets + (1 + math.ceil(bounds.other_bytes / framed) if bounds.other_bytes else 0)
    allowed: Components = {}
    measured: float
    if exact(bounds):
        # The longest wait, of whole packets: one that found the last place, just after a packet had left.
        assert stream.delay is not None
        waited = stream.delay.max_ns - link.delay_ns(size)
        measured = math.ceil((waited - 2) / own) * framed
        dithered = math.ceil(link.dither_ns / own)
        allowed = {"dither": rectangular(float(dithered * framed))}
        slack += dithered
    else:
        # The 90th percentile. Of a sender whose CPU is taken away now and then, the half of the packets or more find a
        # queue that has just been emptied a little: the median says how long it paused. And no more than a tenth may
        # have come out late because the link's CPU was taken away.
        waited = steady.delay.p90_ns - _unqueued_ns(link, stream, alone)
        measured = waited * rate / BYTE_NS
    tolerance = bounds.queue_share * configured + slack * framed
    if not exact(bounds):
        tolerance += bounds.instant_ns * rate / BYTE_NS  # what leaves while a sender's burst is on its way
    parts, samples = budget.queue(rate, framed, bounds.other_bytes, judge.instrument, steady.packets, clocks_ns)
    excess = (offered - rate) * stream.sending_ns / BYTE_NS
    starved = _starved(link, probing, offered, stream, bounds)
    if (excess < (1 if exact(bounds) else 1.05) * configured or starved) and measured < configured - tolerance:
        note = "not filled: " + _too_little(offered, bounds)
        yield judge.missing("queue limit", "bytes", configured, note)
    elif stream.refused_packets > 0 and measured > configured + tolerance:
        yield judge.missing("queue limit", "bytes", configured, "packets waited before the link: it was too slow")
    else:
        near = 0.0 if exact(bounds) else NEARLY * link.line.mean_ns * rate / BYTE_NS
        hint = hints.queue(link, size, measured, max(tolerance + framed, near))
        yield judge.row(
            "queue limit",
            "bytes",
            configured,
            measured,
            tolerance,
            components=parts,
            samples=samples,
            steady=True,
            hint=hint,
            allowed=allowed,
        )
