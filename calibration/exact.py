"""The verification in the virtual clock: which probes, how exact they must be, and why. Pure but for `answer`.

In: a plan's expectations. Out: the probes (`VirtualProbes`), a program of them, its answer, and `TOLERANCES` with
`REASONS` for `compare`. Nothing there is ever late, so few packets give all the information there is, and their cost is
counted in packets: virtual time is free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.calibration.expectation import ENOUGH, LinkExpectation, PairExpectation, framed_bytes, serialisation_ns
from ewan.calibration.judge import ArrivedFlow
from ewan.calibration.probing import (
    MS,
    PROBE_BYTES,
    ProbePlan,
    hidden_limit,
    link_stream,
    packet_stream,
    probe_bytes,
    shared_streams,
    turns,
)
from ewan.calibration.slow_start import SEGMENT_BYTES, full_round_trip_ns, segment_ns, slow_start_ns
from ewan.calibration.tolerances import REASONS as REASONS_LIVE
from ewan.calibration.tolerances import Tolerances
from ewan.generator import traffic_request
from ewan.generator.traffic_request import end
from ewan.labs.base import documents
from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.plan import Plan
from ewan.labs.record import host_drops
from ewan.labs.record.traffic import BulkWork, FlowRequest, SocketOptions
from ewan.labs.runtime.probe_documents import ProbeAnswer, ProbeRequest, ProbeStream
from ewan.labs.runtime.program import Program

TOLERANCES = Tolerances(
    delay_ns=0,
    delay_share=0.0,
    delay_p99_ns=0,
    rtt_ns=0,
    rate_share=0.0,
    instant_ns=1,
    queue_share=0.0,
    queue_packets=0.0,
    confidence=0.9999,
    goodput_above=0.001,
    goodput_below=0.005,
    release_p50_ns=0,
    release_p99_ns=0,
)

REASONS = {
    "delay": "0 ns, for every packet; where a packet's time at the rate is no whole number of ns, 1 ns, as it is "
    "rounded up; more by what the sender's dither says, where the sender is a host that has one",
    "rate": "1 ns at each end of the window in which packets were counted, as instants are whole ns",
    "loss": "none where none is configured; otherwise the configured probability must lie in the Wilson interval of "
    "the count, 99.99 % for all comparisons of a certificate together (Bonferroni), widened by the correlation of the "
    "configured model",
    "queue": "0 packets: as many as the longest wait of any packet took to be sent; one more where the sender's dither "
    "adds to that wait",
    "rtt": "0 ns, or the sum of the roundings of all ways; more by the dither of both hosts",
    "goodput": "of those two round trips in which most was delivered: 0.1 % and four segments above what headers leave "
    "of the rate, as acknowledgements tell of two segments at a time and are dithered too, and where some were lost of "
    "up to 44 or 1.1 ms (SACKs held back), and by as much as jitter may bunch them; 0.5 % and two segments below it by "
    "a sender whose window filled the pipe, where the queue holds the BDP and nothing is lost on purpose",
    "tbf": "a token bucket sends bursts and counts time in ticks of 64 ns: rate 0.1 %, queue 2 packets; a lone packet "
    "passes without its time at the rate",
    "routing": REASONS_LIVE["routing"],
}

ABOVE = 4
"""A saturating stream offers this many times the link's rate: the queue fills with little waste."""
BATCH_PACKETS = 16
BURST_NS = 100_000
"""The burst of a token bucket."""
BUSY_SAMPLES = 8
"""The number of samples in the part of a transfer over which its goodput is counted: two round trips."""
MOST_BINS = 20_000
"""Bins of what arrived of all transfers together; where they last long, each bin does."""
SYN_AGAIN_NS = 3 * NS_PER_SECOND
"""A SYN or its answer that is lost is sent again after 1 s and then after 2 s (RFC 6298, sections 2.1 and 5.5)."""
TIMES = 25
"""A transfer is counted for so many times as a policer's bucket takes to fill, or as jitter moves packets."""
MOST_SEGMENTS = 20_000
"""A transfer is counted for at most so many segments longer because of jitter."""
SERVED_PACKETS = 400
"""Packets that a link sends while it is measured, at least."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The number of packets that a verification may take; a present-day host carries some 100 000 of them in a
    second."""

    delay_packets: int = 200
    spread_packets: int = 1_000
    """The packets of a stream whose delay varies."""
    all_delay_packets: int = 50_000
    loss_packets: int = 20_000
    all_loss_packets: int = 200_000
    pairs: int = 64
    round_trips: int = 20
    fill_packets: int = 150_000
    all_fill_packets: int = 400_000
    transfers: int = 3
    transfer_packets: int = 1_500_000
    all_transfer_packets: int = 2_000_000


def program(plan: Plan, probing: ProbePlan) -> Program:
    """The probes, and after them the transfers."""
    flows = probing.flows
    request = ProbeRequest(tuple(plan.host_cpus), tuple(probing.probes), "virtual")
    longest = max((flow.stop_ns or 0 for flow in flows), default=0) + 1
    traffic = None
    if flows:
        bins_ns = max(min(flow.sample_ns or 0 for flow in flows), longest // MOST_BINS)
        traffic = traffic_request.request(plan, flows, "virtual", longest, series_ns=bins_ns)
    watched = host_drops.NAMES
    return Program(request, longest_ns=longest, expected_ns=probing.duration_ns, traffic=traffic, drops=watched)


def answer(probing: ProbePlan, run: Path) -> tuple[ProbeAnswer, list[ArrivedFlow]]:
    """The results of the run of `program`: one for each of the probes, and the transfers after them."""
    found = documents.read(ProbeAnswer, run / "probe.json")
    arrived = traffic_request.arrived(run) if probing.flows else {}
    flows = []
    for asked, told in zip(probing.flows, traffic_request.read(run) if probing.flows else (), strict=True):
        assert asked.sample_ns is not None and asked.stop_ns is not None
        lasts_ns = asked.stop_ns - asked.start_ns
        flows.append(ArrivedFlow(told, arrived.get(told.flow, []), BUSY_SAMPLES * asked.sample_ns, lasts_ns))
    return found, flows


def _alone_ns(link: LinkExpectation, packet_bytes: int) -> float:
    """Packets this far apart never wait for each other before the delay line."""
    exits = sum(each.serialisation_ns(packet_bytes) for each in (link.source_exit, *link.after))
    return link.apart_ns(packet_bytes) + 4 * exits


def _stay_ns(link: LinkExpectation, packet_bytes: int) -> float:
    """By then a packet has come through, or never will."""
    return link.latest_ns(packet_bytes) + 2 * _alone_ns(link, packet_bytes) + MS


@dataclass(frozen=True, slots=True)
class VirtualProbes:
    """The method of the virtual clock: time is free, packets are not."""

    budget: Budget = Budget()

    @property
    def most_pairs(self) -> int:
        """Pairs whose round trips are measured."""
        return self.budget.pairs

    @property
    def most_transfers(self) -> int:
        """Bottlenecks over which TCP is measured."""
        return self.budget.transfers

    @property
    def longest_wait_ns(self) -> float:
        """Virtual time is free."""
        return math.inf

    def delays(self, links: Sequence[LinkExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream through each link, and the time for its last packets (ns)."""
        streams = []
        share = self.budget.all_delay_packets // max(len(links), 1)
        least = [
            max(
                MS,
                _alone_ns(link, probe_bytes(link)),
                2 * link.dither_ns,
                0 if link.direction.reorder else link.line.spread_ns,
            )
            for link in links
        ]
        for link, turn in zip(links, turns(links, least), strict=True):
            constant = link.line.constant
            enough = self.budget.delay_packets if constant else self.budget.spread_packets * link.line.dispersion
            packets = max(min(round(enough), share), 3)
            streams.append(replace(link_stream(link, turn, lab, packets), raw=not constant))
        stay = max((_stay_ns(link, probe_bytes(link)) for link in links), default=0)
        return streams, stay

    def losses(self, links: Sequence[LinkExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream through each link, and the time for its last packets (ns)."""
        packets = max(min(self.budget.loss_packets, self.budget.all_loss_packets // max(len(links), 1)), 3)
        least = [max(10_000, _alone_ns(link, probe_bytes(link))) for link in links]
        streams = [link_stream(link, turn, lab, packets) for link, turn in zip(links, turns(links, least), strict=True)]
        stay = max((_stay_ns(link, probe_bytes(link)) for link in links), default=0)
        return streams, stay

    def round_trips(self, pairs: Sequence[PairExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream between each pair, and the time for its last answers (ns)."""
        streams, longest = [], 0.0
        for pair in pairs:
            # Each turn is over before the next pair's begins.
            turn = pair.round_trip_ns(PROBE_BYTES) + pair.dither_ns + 12 * pair.deviation_ns + MS
            interval = turn * len(pairs)
            streams.append(packet_stream(pair.key, pair.ends, lab, PROBE_BYTES, interval, self.budget.round_trips))
            longest = max(longest, turn)
        return streams, longest

    def rates(self, probing: ProbePlan, links: Sequence[LinkExpectation], lab: str) -> None:
        """One direction after the other: side by side they would cost the same."""
        budget = self.budget
        left = budget.all_fill_packets
        for link in sorted(links, key=lambda link: link.queue_packets(link.mtu_bytes)):
            senders, above = link.together(float(ABOVE))
            if link.source_exit.rate_bps and not link.senders:
                above = min(above, 0.99 * link.source_exit.rate_bps / link.direction.rate_bps)
            if above < ENOUGH:
                for what in ("rate", "queue limit"):
                    probing.skip(link.key, what, "its sender's own access rate is not above it")
                continue
            limit = link.queue_packets(link.mtu_bytes)
            # A bucket that was full lets its burst pass before the queue begins to fill.
            passes = math.ceil(link.direction.burst_bytes / framed_bytes(link.direction.framing, link.mtu_bytes))
            fill = math.ceil((limit + passes) * above / (above - 1)) + 4 * BATCH_PACKETS
            if why := hidden_limit(link):
                probing.skip(link.key, "queue limit", why)
            elif fill > min(budget.fill_packets, left):
                probing.skip(link.key, "queue limit", f"filling this queue takes {fill} packets")
            fills = (link.key, "queue limit") not in probing.skipped
            left -= fill if fills else 0
            through = max(link.through(link.mtu_bytes), 0.01)
            own = serialisation_ns(link.direction, link.mtu_bytes)
            # Long enough to send them all, whatever of it is lost, and for a window that a varying delay hardly moves.
            emptied = BURST_NS if link.backend == "tbf" else link.emptied_ns(above)
            burst = math.ceil(emptied / own)
            # Until the sender's dither has filled the queue, the link is idle now and then.
            dithered = math.ceil(link.dither_ns / own)
            served = SERVED_PACKETS + burst + dithered + math.ceil(100 * link.line.spread_ns / own)
            packets = math.ceil((max(fill, served * above) if fills else served * above) / through)
            if packets > budget.fill_packets * 4:
                for what in ("rate", "queue limit"):
                    probing.skip(link.key, what, f"that takes {packets} packets")
                continue
            # As small as the queue is short: a burst may neither overflow it nor leave it empty.
            # So may a card that makes them wait.
            batch = max(1, min(BATCH_PACKETS, limit // 8)) if link.line.constant and not link.card_bps else 1
            interval = math.floor(own * through / above) * len(senders)
            each = math.ceil(packets / len(senders))
            streams = shared_streams(link.key, senders, lab, link.mtu_bytes, interval, each)
            skip_ns = round((2 * BATCH_PACKETS * len(senders) + burst + dithered) * own)
            filling = [replace(stream, batch_packets=batch, skip_ns=skip_ns) for stream in streams]
            stay = _stay_ns(link, link.mtu_bytes) + limit * own
            probing.add("saturate", f"rate {link.key}", filling, stay)

    def transfers(self, probing: ProbePlan, pairs: Sequence[PairExpectation], lab: str) -> None:
        """One after the other."""
        left, start = self.budget.all_transfer_packets, 0
        for pair in pairs:
            duration, packets = _transfer(pair)
            if packets > min(self.budget.transfer_packets, left):
                probing.skip(pair.key, "TCP goodput", f"a transfer takes {packets} packets")
                continue
            # A transfer over a path that loses packets goes on for so long that a lost SYN does not make it too short.
            again = 0 if pair.lossless else SYN_AGAIN_NS
            more = math.ceil(again / segment_ns(pair))
            if packets + more <= min(self.budget.transfer_packets, left):
                duration, packets = duration + again, packets + more
            left -= packets
            part = max(2 * pair.round_trip_ns(SEGMENT_BYTES), 200 * segment_ns(pair), _steadied_ns(pair))
            flow = FlowRequest(
                name=pair.key,
                from_=end(lab, pair.ends.source, pair.ends.source_address),
                to=end(lab, pair.ends.sink, pair.ends.sink_address),
                # Its slow start fills the pipe, whatever a sample of the RTT says.
                socket=SocketOptions("reno"),
                sample_ns=max(round(part / BUSY_SAMPLES), MS // 10),
                start_ns=start,
                stop_ns=start + round(duration),
                work=BulkWork(),
            )
            probing.flows.append(flow)
            # What one leaves in the queues is gone when the next begins.
            start += 2 * round(duration)


def _transfer(pair: PairExpectation) -> tuple[float, int]:
    """The time (ns) in which slow start fills the pipe and the queue, plus the time for which a busy link is then
    observed; and the approximate number of packets of both."""
    segment, full = segment_ns(pair), full_round_trip_ns(pair)
    # What is in flight when the sender stops has not arrived.
    busy = 2 * full + pair.round_trip_ns(SEGMENT_BYTES) + 400 * segment + _steadied_ns(pair)
    # Slow start sends twice what fits in the end.
    return slow_start_ns(pair) + busy, math.ceil((2 * full + busy) / segment)


def _steadied_ns(pair: PairExpectation) -> float:
    """In this time what a policer's bucket holds, and what jitter moves over an edge of the window, are small parts of
    what arrives; 0 where there is neither."""
    return TIMES * max(pair.bucket_ns, min(pair.spread_ns, MOST_SEGMENTS / TIMES * segment_ns(pair)))
