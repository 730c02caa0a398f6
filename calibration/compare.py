"""Expectations and results → verdicts. Pure.

In: what the plan says (`expect`), what the probes found (the answer of `ewan-node probe`) and what the link says
counted itself (`spinner`). Out: one row per link, direction and quantity. A value that was not or could not be
measured has a row that says why. No row is left out, and no value is estimated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from calibration import statistic
from calibration.expectation import BYTE_NS, Expectations, LinkExpectation, framed_bytes, own_ns, serialisation_ns
from calibration.judge import Judge, Results, Stream, dither_note, exact, rate_text, rounding_ns, why_not
from calibration.pairs import pair_rows
from calibration.probing import PROBE_BYTES, Probing
from calibration.spinner import LinkFacts
from calibration.tolerances import Tolerances
from labs.record import Row
from labs.units import PPB

ENOUGH_TELLING = 10
"""Independent delays that tell of their mean; correlated ones count as fewer."""


def compare(
    expected: Expectations,
    probing: Probing,
    answer: dict[str, Any],
    facts: Mapping[str, LinkFacts],
    tolerances: Tolerances | None = None,
    busy: bool = False,
) -> tuple[Row, ...]:
    """`facts` by the link's key ("core forward"). `busy`: other programs used this machine meanwhile."""
    bounds = tolerances or Tolerances()
    results = Results.of(probing, answer)
    machine, live = "the machine was busy" if busy else "", not exact(bounds)
    count = max(len(expected.links), 1)
    rows: list[Row] = []
    for link in expected.links:
        own = facts.get(link.key, LinkFacts())
        cause = "; ".join(cause for cause in (own.cause(), link.cause) if cause)
        judge = Judge(link.link, link.name, cause or machine, live)
        rows += _delay(link, judge, results, bounds, count)
        # Only a link of our own says how late it was.
        if link.backend == "user" and (link.key in facts or not exact(bounds)):
            rows += _release(judge, own, bounds)
        near = dataclasses.replace(bounds, rate_share=0.001, queue_packets=2) if link.bucket else bounds
        rows += _throughput(link, judge, probing, results, near)
        rows += _loss(link, judge, results, bounds, count)
        rows += _queue(link, judge, probing, results, near)
    for pair in expected.pairs:
        causes = [
            facts[f"{name} {way}"].cause()
            for name in pair.links
            for way in ("forward", "backward")
            if f"{name} {way}" in facts
        ]
        judge = Judge(pair.key, "", next((cause for cause in causes if cause), machine), live)
        rows += pair_rows(pair, judge, probing, results, bounds)
    return tuple(rows)


def _delay(link: LinkExpectation, judge: Judge, results: Results, bounds: Tolerances, count: int) -> Iterator[Row]:
    stream = results.streams.get(("delay", link.key))
    size = PROBE_BYTES if stream is None else stream["packet_bytes"]
    base = link.delay_ns(size)
    first = "delay p50" if link.line.constant else "delay mean"
    why = why_not(results, "delay", link.key)
    if why or stream is None:
        yield judge.missing(first, "ns", base, why or "not probed")
        return
    delay, arrived = stream["delay"], stream["received_packets"]
    if moved := link.untold("delay"):
        yield judge.missing(first, "ns", base, moved)
        if delay is not None:
            yield judge.shown("delay min", "ns", None, delay["min_ns"], f"of {arrived} packets")
        return
    if delay is None or arrived < 3:
        lost = f"{arrived} of {stream['sent_packets']} packets arrived"
        if delay is None and link.loss.probability < 0.5:
            yield judge.dead(first, "ns", base, f"nothing came through: {lost}", judge.cause)
        else:
            yield judge.missing(first, "ns", base, lost)
        return
    near = max(bounds.delay_ns, bounds.delay_share * base)
    # A copy leaves right after its original.
    copy = own_ns(link.backend, link.direction, size) if link.duplicates else 0.0
    above = max(near, rounding_ns(_own_parts(link, size))) + link.dither_ns + copy + link.wakeups * bounds.switch_ns
    if link.line.constant:
        yield judge.row(
            "delay p50", "ns", base, delay["p50_ns"], (near, above), dither_note(link.dither_ns), steady=True
        )
        if link.direction.displace_ppb:
            yield judge.missing("delay p99", "ns", base, "it displaces packets, which then are later")
            return
        if arrived < 100:
            yield judge.missing("delay p99", "ns", base, f"{arrived} packets are too few for a p99")
        else:
            behind = bounds.other_bytes * BYTE_NS / link.direction.rate_bps
            yield judge.row("delay p99", "ns", base, delay["p99_ns"], (near, above + bounds.delay_p99_ns + behind))
        if exact(bounds):
            yield judge.row("delay min", "ns", base, delay["min_ns"], (near, above))
            behind = bounds.other_bytes * BYTE_NS / link.direction.rate_bps
            yield judge.row("delay max", "ns", base, delay["max_ns"], (near, above + behind), f"of {arrived} packets")
        else:
            yield judge.shown("delay max", "ns", base, delay["max_ns"], f"of {arrived} packets")
        return
    if arrived < 20:
        yield judge.missing("delay mean", "ns", base, f"{arrived} packets are too few for a delay that varies")
        return
    telling = arrived / link.line.dispersion
    if telling < ENOUGH_TELLING:
        needed = round(ENOUGH_TELLING * link.line.dispersion)
        why = f"{arrived} packets are too few for delays that are correlated: it takes {needed}"
        yield judge.missing("delay mean", "ns", base, why)
        return
    z = statistic.quantile(bounds.confidence, 2 * count)
    wander = z * link.line.wander_ns(arrived)
    note = f"of {arrived} packets" + ("" if link.line.dispersion == 1 else f", worth {telling:.0f} independent ones")
    yield judge.row("delay mean", "ns", base, delay["mean_ns"], (near + wander, above + wander), note)
    own = own_ns(link.backend, link.direction, size)
    if link.line.deviation_ns < 5 * bounds.delay_ns:
        yield judge.missing("delay distribution", "ratio", 0, "it is too narrow for this host's own wander")
        return
    # The best fit within the tolerance for a fixed offset: the shape is judged here, the place above.
    offset = max(-near, min(above, delay["mean_ns"] - base))
    values = [value - own - offset for value in stream["delays_ns"]]
    distance = statistic.kolmogorov(values, link.line.distribution)
    limit = (
        statistic.kolmogorov_limit(telling, bounds.confidence, 2 * count) + bounds.delay_ns / link.line.deviation_ns / 5
    )
    yield judge.row("delay distribution", "ratio", 0, distance, limit, "Kolmogorov distance")


def _own_parts(link: LinkExpectation, packet_bytes: int) -> tuple[float, ...]:
    own = own_ns(link.backend, link.direction, packet_bytes)
    return own, *(each.serialisation_ns(packet_bytes) for each in (link.source_exit, link.after))


def _release(judge: Judge, facts: LinkFacts, bounds: Tolerances) -> Iterator[Row]:
    if facts.release_p50_ns is None or facts.release_p99_ns is None or facts.release_max_ns is None:
        why = "the link has ended" if facts.ended else "the link gave no statistics"
        yield judge.missing("release error p50", "ns", 0, why)
        return
    yield judge.row("release error p50", "ns", 0, facts.release_p50_ns, bounds.release_p50_ns)
    yield judge.row("release error p99", "ns", 0, facts.release_p99_ns, bounds.release_p99_ns)
    yield judge.shown("release error max", "ns", 0, facts.release_max_ns, facts.disturbance())


def _offered_bps(stream: Stream, framed: int) -> float:
    """The rate at which packets left the sender's own interface, as the link counts bytes."""
    if stream["sending_ns"] == 0:
        return 0.0
    return float(stream["sent_packets"] - 1) * framed * BYTE_NS / float(stream["sending_ns"])


def _carried_bps(offered_bps: float, rate_bps: float, room_ns: float, longest_gap_ns: float) -> float:
    """The least that a port of this rate and queue forwards, when senders pause and then catch up.

    Offered less than half its rate, it loses nothing. Otherwise the worst case is a sender that pauses again and again
    and sends a burst after each pause: the port then sends until its queue is empty, and is idle for the rest.
    """
    if offered_bps < rate_bps / 2:
        return offered_bps
    return min(offered_bps, rate_bps * room_ns / max(room_ns, longest_gap_ns))


def _throughput(
    link: LinkExpectation, judge: Judge, probing: Probing, results: Results, bounds: Tolerances
) -> Iterator[Row]:
    configured = link.direction.rate_bps
    stream = results.saturation(link.key)
    why = probing.skipped.get((link.key, "rate")) or why_not(results, "saturate", link.key)
    if why or stream is None:
        yield judge.missing("rate", "bit/s", configured, why or "not probed")
        return
    framed = framed_bytes(link.direction.framing, stream["packet_bytes"])
    offered = _offered_bps(stream, framed) * link.through(stream["packet_bytes"])
    steady = stream["steady"]
    if steady is None or steady["packets"] < 8:
        yield judge.missing("rate", "bit/s", configured, "too few packets arrived in the time there was")
        return
    packets, window = steady["packets"], steady["fitted_window_ns"]
    through = packets * framed * BYTE_NS / window
    late = 0.0
    room = link.queue_packets(stream["packet_bytes"]) * serialisation_ns(link.direction, stream["packet_bytes"])
    if link.wakeups and through < 0.7 * _carried_bps(offered, configured, room, stream["longest_sender_gap_ns"]):
        yield judge.row("rate", "bit/s", configured, through, 0.0, f"of {rate_text(offered)} offered")
        return
    if link.line.constant and link.active_queue is None and stream["longest_sender_gap_ns"] > room / 4:
        # A sender that pauses empties a short queue: only the time in which the link was never idle counts.
        packets, window = steady["busy_packets"], steady["busy_window_ns"]
        # How late its first packet may have come without being told from one that waited.
        late = 4 * bounds.instant_ns + room / 10
        if packets < 8 or window < min(2_000 * bounds.instant_ns, steady["window_ns"] / 2):
            note = "this host's sender paused for longer than the queue holds out"
            yield judge.missing("rate", "bit/s", configured, note)
            return
    measured = packets * framed * BYTE_NS / window
    uncertain = (2 * bounds.instant_ns + late + (0 if link.line.constant else 2 * link.line.spread_ns)) / window
    uncertain += bounds.other_bytes / (packets * framed) + bounds.other_bps / configured
    # So many may be aside at one end of the window and none at the other.
    uncertain += link.direction.displace_packets / packets
    tolerance = configured * (bounds.rate_share + uncertain)
    if stream["socket_drops_packets"] > 0 and measured < configured - tolerance:
        dropped = stream["socket_drops_packets"]
        yield judge.missing("rate", "bit/s", configured, f"the probe itself dropped {dropped} packets: CPU too slow")
    elif link.wakeups and measured < 0.95 * min(offered, configured):
        note = f"of {rate_text(offered)} offered"
        yield judge.row("rate", "bit/s", configured, measured, tolerance, note)
    elif offered < 1.02 * configured and measured < configured + tolerance:
        note = f"above this host's reach: it could offer {rate_text(offered)}"
        yield judge.missing("rate", "bit/s", configured, note)
    else:
        yield judge.row(
            "rate", "bit/s", configured, measured, tolerance, f"{rate_text(offered)} were offered", steady=True
        )


def _loss(link: LinkExpectation, judge: Judge, results: Results, bounds: Tolerances, count: int) -> Iterator[Row]:
    configured = link.loss.probability
    kind = "loss" if ("loss", link.key) in results.streams else "delay"
    stream = results.streams.get((kind, link.key))
    why = link.untold("loss") or why_not(results, kind, link.key)
    if why or stream is None:
        yield judge.missing("loss", "ppb", configured * PPB, why or "not probed")
        return
    sent, lost = stream["sent_packets"], stream["lost_packets"]
    own = stream["socket_drops_packets"]
    lost = max(lost - own, 0)
    note = f"{lost} of {sent}"
    share = lost / sent
    z = statistic.quantile(bounds.confidence, 2 * count)
    if configured == 0:
        yield judge.row("loss", "ppb", 0, share * PPB, 0.0, note)
    elif link.loss.dispersion == 0:
        slack = (link.loss.slack_packets + 1) / sent * PPB
        yield judge.row("loss", "ppb", configured * PPB, share * PPB, slack, note)
    else:
        yield _binomial(judge, "loss", configured, lost, sent, z, link.loss.dispersion)
    copies, arrived = stream["duplicated_packets"], stream["received_packets"]
    if link.duplicates > 0 and arrived > 0:
        yield _binomial(judge, "duplicates", link.duplicates, copies, arrived, z, 1.0)
    elif copies > 0:
        yield judge.row("duplicates", "ppb", 0, copies / arrived * PPB, 0.0, f"{copies} of {arrived}")


def _binomial(
    judge: Judge, quantity: str, configured: float, found: int, total: int, z: float, dispersion: float
) -> Row:
    """Is the configured probability in the interval of the measured one?"""
    if configured * total / dispersion < 3:
        needed = round(10 * dispersion / configured)
        why = f"{found} of {total}: it takes about {needed} packets to tell"
        return judge.missing(quantity, "ppb", configured * PPB, why)
    share = found / total
    low, high = statistic.wilson(round(found / dispersion), total / dispersion, z)
    note = f"{found} of {total}; interval {low:.4%} to {high:.4%}"
    # As a tolerance of (measured − configured): how far below and above the interval reaches.
    return judge.row(quantity, "ppb", configured * PPB, share * PPB, ((high - share) * PPB, (share - low) * PPB), note)


def _queue(
    link: LinkExpectation, judge: Judge, probing: Probing, results: Results, bounds: Tolerances
) -> Iterator[Row]:
    stream = results.saturation(link.key)
    size = link.mtu_bytes if stream is None else stream["packet_bytes"]
    framed = framed_bytes(link.direction.framing, size)
    configured = link.queue_packets(size) * framed
    why = probing.skipped.get((link.key, "queue limit")) or why_not(results, "saturate", link.key)
    if why or stream is None:
        yield judge.missing("queue limit", "bytes", configured, why or "not probed")
        return
    rate = link.direction.rate_bps
    offered = _offered_bps(stream, framed) * link.through(stream["packet_bytes"])
    steady = stream["steady"]
    if steady is None or steady["packets"] < 8:
        yield judge.missing("queue limit", "bytes", configured, "too few packets arrived in the time there was")
        return
    own = serialisation_ns(link.direction, size)
    # What others have in the queue may fill one more place than it has bytes for: the wait is rounded up to packets.
    slack = bounds.queue_packets + (1 + math.ceil(bounds.other_bytes / framed) if bounds.other_bytes else 0)
    if exact(bounds):
        # The longest wait, of whole packets: one that found the last place, just after a packet had left.
        waited = stream["delay"]["max_ns"] - link.delay_ns(size)
        measured = math.ceil((waited - 2) / own) * framed
        slack += math.ceil(link.dither_ns / own)
    else:
        # The median: what came out late because a CPU was taken away must not decide. Packets sent in small bursts find
        # the queue a few packets less than full, which the tolerance holds. The base is the probe's own first packet.
        waited = steady["delay"]["p50_ns"] - stream["delay"]["min_ns"]
        measured = waited * rate / BYTE_NS
    burst = 0.0 if exact(bounds) else bounds.instant_ns * rate / BYTE_NS
    tolerance = bounds.queue_share * configured + slack * framed + burst
    excess = (offered - rate) * stream["sending_ns"] / BYTE_NS
    if excess < (1 if exact(bounds) else 1.05) * configured and measured < configured - tolerance:
        note = f"not filled: this host could offer {rate_text(offered)}"
        yield judge.missing("queue limit", "bytes", configured, note)
    elif stream["refused_packets"] > 0 and measured > configured + tolerance:
        yield judge.missing("queue limit", "bytes", configured, "packets waited before the link: it was too slow")
    else:
        yield judge.row("queue limit", "bytes", configured, measured, tolerance, steady=True)
