"""The probes of a live lab, within a time budget. Pure.

In: expectations and a budget. Out: the probes (`LiveProbes`). Rates are measured one after the other, or as many at
once as this host can send.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ewan.calibration.expectation import BYTE_NS, ENOUGH, LinkExpectation, PairExpectation, serialisation_ns
from ewan.calibration.probing import (
    MS,
    PROBE_BYTES,
    SECOND,
    SENDER,
    ProbePlan,
    hidden_limit,
    link_stream,
    packet_stream,
    probe_bytes,
    shared_streams,
    turns,
)
from ewan.calibration.slow_start import full_round_trip_ns, slow_start_ns
from ewan.generator.traffic_request import end
from ewan.labs.base.codec import replace
from ewan.labs.runtime.probe_documents import ProbeStream, TcpProbe

TELLING = 15
"""Where so many losses are to be expected, none at all is outside: the interval of none (Wilson) ends below the loss
that is configured, where up to 50 links are judged together."""
RECOVERY_ROUND_TRIPS = 6
"""For so many round trips Reno sends again what slow start lost; then at least so many are judged."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """The time and the load that a verification may take."""

    delay_ns: int = 2 * SECOND
    delay_longest_ns: int = 6 * SECOND
    delay_gap_ns: int = 50_000
    """Between two packets, over all delay streams together."""
    loss_ns: int = 2_500 * MS
    loss_longest_ns: int = 6 * SECOND
    """The time for small losses, if it is enough to distinguish them from none."""
    loss_gap_ns: int = 50_000
    pairs: int = 16
    rtt_ns: int = SECOND
    rates_ns: int = 20 * SECOND
    rates_longest_ns: int = 45 * SECOND
    steady_ns: int = 800 * MS
    steady_shortest_ns: int = 50 * MS
    steady_longest_ns: int = 5 * SECOND
    fill_longest_ns: int = 2 * SECOND
    packets_per_second: int = 120_000
    """The packet rate that this host is asked to send at once; a single link that needs more is tried on its own."""
    transfers: int = 3
    filling_longest_ns: int = 10 * SECOND
    tcp_ns: int = SECOND
    """The part of a transfer that is judged, at least; it follows slow start and the recovery of its losses."""
    tcp_longest_ns: int = 5 * SECOND


@dataclass(frozen=True, slots=True)
class LiveProbes:
    """The method of the live clock: probes take time, and other programs disturb them."""

    budget: TimeBudget = TimeBudget()

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
        """As long as delays are measured."""
        return self.budget.delay_longest_ns

    def delays(self, links: Sequence[LinkExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream through each link, and the time for its last packets (ns)."""
        streams = []
        gap = max(MS, self.budget.delay_gap_ns * len(links))
        least = [
            # Closer together, packets would wait for each other in the delay line.
            max(gap, link.apart_ns(probe_bytes(link)), 0 if link.direction.reorder else link.line.spread_ns)
            for link in links
        ]
        for link, turn in zip(links, turns(links, least), strict=True):
            telling = 20 * link.line.dispersion * turn.interval_ns
            duration = min(max(self.budget.delay_ns, telling), self.budget.delay_longest_ns)
            packets = max(int(duration / turn.interval_ns), 3)
            streams.append(replace(link_stream(link, turn, lab, packets), raw=True))
        return streams, self._stay_ns(links)

    def losses(self, links: Sequence[LinkExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream through each link, and the time for its last packets (ns)."""
        streams = []
        gap = self.budget.loss_gap_ns * len(links)
        least = [max(gap, link.apart_ns(probe_bytes(link))) for link in links]
        for link, turn in zip(links, turns(links, least), strict=True):
            duration = self.budget.loss_ns
            if link.loss.probability:
                telling = TELLING * max(link.loss.dispersion, 1.0) / link.loss.probability * turn.interval_ns
                duration = max(duration, math.ceil(telling)) if telling < self.budget.loss_longest_ns else duration
            packets = max(int(duration / turn.interval_ns), 3)
            streams.append(link_stream(link, turn, lab, packets))
        return streams, self._stay_ns(links)

    def _stay_ns(self, links: Sequence[LinkExpectation]) -> float:
        """The time to wait for the last packet: the longest delay of any link, and a reserve for lateness."""
        latest = max((link.latest_ns(probe_bytes(link)) for link in links), default=0)
        return min(latest, self.longest_wait_ns) + 100 * MS

    def round_trips(self, pairs: Sequence[PairExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream between each pair, and the time for its last answers (ns)."""
        streams = []
        longest = 0.0
        for pair in pairs:
            own = pair.slowest_ns(PROBE_BYTES)
            # As for delays: packets of pairs that share a link should not wait for each other.
            interval = max(10 * MS, max(4 * own, pair.spread_ns) * len(pairs))
            duration = min(max(self.budget.rtt_ns, 20 * interval), self.budget.delay_longest_ns)
            packets = max(int(duration / interval), 3)
            stream = packet_stream(pair.key, pair.ends, lab, PROBE_BYTES, interval, packets)
            streams.append(replace(stream, raw=True))
            longest = max(longest, pair.round_trip_ns(PROBE_BYTES) + 5 * pair.deviation_ns)
        return streams, longest + 100 * MS

    def rates(self, probing: ProbePlan, links: Sequence[LinkExpectation], lab: str) -> None:
        """As many links at once as this host can send to, one direction of a half-duplex one; of too many only some."""
        budget = self.budget
        # A first guess of how many saturations follow each other decides how long each may be.
        offered = sum(1.25 / serialisation_ns(link.direction, link.mtu_bytes) * SECOND for link in links)
        rounds = max(1, min(len(links), round(offered / budget.packets_per_second)))
        share = budget.rates_ns / rounds
        planned = [(link, *_saturation(probing, link, lab, budget, share)) for link in links]

        def order(item: tuple[LinkExpectation, list[ProbeStream], float]) -> tuple[bool, bool, float]:
            link, streams, stay = item
            back = link.direction.half_duplex and link.name == "backward"
            return link.wakeups > 0, back, streams[0].lasts_ns + stay

        batches: list[list[tuple[ProbeStream, float]]] = [[]]
        load, media = 0.0, set[str]()
        for link, streams, stay in sorted(planned, key=order):
            # A switch in user space needs the CPUs itself.
            pace = sum(SECOND / stream.interval_ns for stream in streams)
            pace += (link.wakeups > 0) * budget.packets_per_second
            many = load + pace > budget.packets_per_second or len(batches[-1]) + len(streams) > 256
            if batches[-1] and (many or link.link in media):
                batches.append([])
                load, media = 0.0, set[str]()
            media |= {link.link} if link.direction.half_duplex else set()
            batches[-1] += [(stream, stay) for stream in streams]
            load += pace
        longest = [max((stream.lasts_ns + stay for stream, stay in batch), default=0.0) for batch in batches]
        # Too many for the time there is: every so many of them, forward and backward in turn.
        every = max(1, math.ceil(sum(longest) / budget.rates_longest_ns))
        for number, batch in enumerate(batches):
            streams = [stream for stream, _ in batch]
            if (number + number // every) % every == 0:
                probing.add("saturate", f"rate {number + 1}", streams, max((stay for _, stay in batch), default=0))
                continue
            for stream in streams:
                for what in ("rate", "queue limit"):
                    probing.skip(
                        stream.name.split(SENDER)[0],
                        what,
                        f"of so many fast links, one direction in {every} is measured",
                    )

    def transfers(self, probing: ProbePlan, pairs: Sequence[PairExpectation], lab: str) -> None:
        """One after the other: as long as slow start, the recovery of its losses, and what is judged then."""
        budget = self.budget
        for pair in pairs:
            recovery = RECOVERY_ROUND_TRIPS * full_round_trip_ns(pair)
            filling = min(round(slow_start_ns(pair) + recovery), budget.filling_longest_ns)
            judged = min(max(round(recovery), budget.tcp_ns), budget.tcp_longest_ns)
            duration = filling + judged
            if pair.goodput_bps * duration / BYTE_NS < 100_000:
                probing.skip(pair.key, "TCP goodput", "too slow for a transfer of a few seconds")
                continue
            tcp = TcpProbe(
                name=f"tcp {pair.key}",
                from_=end(lab, pair.ends.source, pair.ends.source_address),
                to=end(lab, pair.ends.sink, pair.ends.sink_address),
                # Every kernel has Reno, and its slow start fills the pipe whatever a sample of the RTT says; CUBIC's
                # (HyStart) ends at the first late packet and then needs many seconds.
                congestion="reno",
                duration_ns=duration,
                steady_ns=judged,
                connect_timeout_ns=round(3 * pair.rtt_ns) + 3 * SECOND,
            )
            probing.probes.append(tcp)


def _in_line_ns(link: LinkExpectation) -> float:
    return link.line.mean_ns + 5 * link.line.deviation_ns + link.direction.displace_within_ns


def _saturation(
    probing: ProbePlan, link: LinkExpectation, lab: str, budget: TimeBudget, share_ns: float
) -> tuple[list[ProbeStream], float]:
    """Streams that offer more than the link's rate, and how long after the last packet was sent all have arrived (ns).

    One stream, or several where hosts share a port of a switch.
    """
    direction = link.direction
    stay = _in_line_ns(link) + 20 * MS
    steady = min(max(share_ns / 2 - stay, budget.steady_shortest_ns), budget.steady_ns)
    overhead = direction.framing.overhead_bytes
    # Small packets on slow links: at least 40 of them in the steady part.
    size = min(max(int(direction.rate_bps * steady / BYTE_NS / 40) - overhead, PROBE_BYTES), link.mtu_bytes)
    size = min(max(size, PROBE_BYTES), link.mtu_bytes)
    own = serialisation_ns(direction, size)
    # A delay that varies moves both ends of the window: a longer one for 1 % all the same.
    steady = min(max(steady, 12 * own, 200 * link.line.spread_ns), budget.steady_longest_ns)
    senders, above = link.together(1.25 if direction.rate_bps > 200_000_000 else 2.0)
    full = link.queue_packets(size) * own
    fill = full / max(above - 1, 0.001) * 1.1 + 20 * MS + link.emptied_ns(above)
    if above < ENOUGH:
        probing.skip(link.key, "queue limit", "the cards of its senders are no faster than it is")
    elif why := hidden_limit(link):
        probing.skip(link.key, "queue limit", why)
    elif fill > min(budget.fill_longest_ns, max(share_ns, 150 * MS)):
        probing.skip(link.key, "queue limit", f"filling this queue takes {fill / SECOND:.1f} s")
    if (link.key, "queue limit") in probing.skipped:
        above = min(above, 1.25)
        fill = 20 * MS + 2 * link.line.spread_ns + link.emptied_ns(above)
    sending = fill + steady
    through = link.through(size)
    interval = max(own * max(through, 0.01) / above, 1_000) * len(senders)
    streams = shared_streams(link.key, senders, lab, size, interval, max(int(sending / interval), 3))
    streams = [replace(stream, skip_ns=round(fill)) for stream in streams]
    return streams, stay + min(full, max(above - 1, 0) * sending) + own
