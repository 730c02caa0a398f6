"""Selects the probes that go through a lab: the same five kinds in both clocks, made by each clock's own method. Pure.

In: a plan's expectations, and a method: `probe.LiveProbes` or `exact.VirtualProbes`. Out: the probes, with a reason for
each quantity that is not measured. Delays of all links are measured at once, then losses, round trips, and rates; TCP
comes last, because it leaves full queues behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ewan.calibration.expectation import Expectations, LinkExpectation, PairExpectation, ProbeEnds
from ewan.generator.traffic_request import end
from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.record.traffic import FlowRequest
from ewan.labs.runtime.probe_documents import (
    DelayProbe,
    LossProbe,
    OfStreams,
    Probe,
    ProbeStream,
    RttProbe,
    SaturateProbe,
    TcpProbe,
)

MS = NS_PER_MS
SECOND = NS_PER_SECOND
PROBE_BYTES = 100
"""Size of an IP packet that measures delay or loss: small, so that its serialisation time matters little."""
MTU_PACKETS = 3
"""The packets of each size: the loss of one decides nothing."""
SENDER = " sender "
"""Follows the link's key in the name of a stream that is one of several which fill the link together."""
SETTLES = " settles"
"""Follows the link's key in the name of a stream of which nothing is read."""

KINDS: dict[str, Callable[[str, tuple[ProbeStream, ...], int], OfStreams]] = {
    "delay": DelayProbe,
    "loss": LossProbe,
    "rtt": RttProbe,
    "saturate": SaturateProbe,
}


@dataclass(slots=True)
class ProbePlan:
    """The probes, and the reasons why some quantities of some links are not measured. `flows`: transfers that follow
    the probes, of the virtual clock."""

    probes: list[Probe] = field(default_factory=list)
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    """(link or pair, quantity) → reason."""
    flows: list[FlowRequest] = field(default_factory=list)

    def first(self, count: int) -> ProbePlan:
        """A plan of the first `count` probes only."""
        return ProbePlan(self.probes[:count], self.skipped)

    def skip(self, key: str, quantity: str, reason: str) -> None:
        """Records why a quantity of a link or pair is not measured."""
        self.skipped[key, quantity] = reason

    @property
    def duration_ns(self) -> int:
        """About how long all probes take on a host that is fast enough."""
        lasting = [
            each.duration_ns
            if isinstance(each, TcpProbe)
            else max(stream.lasts_ns for stream in each.streams) + each.drain_ns
            for each in self.probes
        ]
        lasting += [(flow.stop_ns or 0) - flow.start_ns for flow in self.flows]
        return sum(lasting) + 10 * MS * len(lasting)

    def add(self, kind: str, name: str, streams: Sequence[ProbeStream], drain_ns: float) -> None:
        """Adds a probe, if it has streams; after the last packet was sent it waits `drain_ns` for those on the way."""
        if streams:
            self.probes.append(KINDS[kind](name, tuple(streams), round(drain_ns)))


class Method(Protocol):
    """The method by which a clock measures: the number of packets, their spacing, and the quantities that it has no
    time for. The first three methods return streams, and the time (ns) after the last packet was sent at which all have
    arrived.
    """

    @property
    def most_pairs(self) -> int:
        """Pairs whose round trips are measured."""

    @property
    def most_transfers(self) -> int:
        """Bottlenecks over which TCP is measured."""

    @property
    def longest_wait_ns(self) -> float:
        """The longest time for which a probe waits for its last packets."""

    def delays(self, links: Sequence[LinkExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream through each link, whose packets do not wait for each other."""

    def losses(self, links: Sequence[LinkExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream through each link that loses or duplicates packets."""

    def round_trips(self, pairs: Sequence[PairExpectation], lab: str) -> tuple[list[ProbeStream], float]:
        """A stream between each pair, whose packets are answered."""

    def rates(self, probing: ProbePlan, links: Sequence[LinkExpectation], lab: str) -> None:
        """Adds probes that offer each link more than its rate, and what of rates and queue limits is skipped."""

    def transfers(self, probing: ProbePlan, pairs: Sequence[PairExpectation], lab: str) -> None:
        """Adds a TCP transfer between each pair, and which are skipped."""


def plan_probes(expected: Expectations, lab: str, method: Method) -> ProbePlan:
    """The probes of a lab, in the order in which they are made."""
    probing = ProbePlan()
    links, pairs = expected.links, expected.pairs
    probing.add("delay", "delay", *method.delays(links, lab))
    lossy = [link for link in links if (not link.lossless or link.duplicates > 0) and not link.untold("loss")]
    probing.add("loss", "loss", *method.losses(lossy, lab))
    for pair in pairs[method.most_pairs :]:
        probing.skip(pair.key, "base RTT", f"only {method.most_pairs} pairs are measured")
    told = [pair for pair in pairs[: method.most_pairs] if not pair.untold("delay")]
    told = [pair for pair in told if _passes(probing, pair, "base RTT", PROBE_BYTES)]
    probing.add("rtt", "rtt", *method.round_trips(told, lab))
    _skip_untold(probing, expected)
    probing.add("rtt", "path MTU", *_of_sizes(pairs, lab, method))
    method.rates(probing, [link for link in links if not link.untold("rate")], lab)
    probing.add("delay", "settle", *_settling(links, lab, method))
    steady = [pair for pair in pairs if not pair.untold("queue limit")]
    steady = [pair for pair in steady if _passes(probing, pair, "TCP goodput", pair.mtu_bytes)]
    method.transfers(probing, list(_one_per_bottleneck(probing, steady, method.most_transfers)), lab)
    return probing


def mtu_stream(pair: PairExpectation, packet_bytes: int) -> str:
    """The name of the stream that tells whether packets of a size pass between a pair and back."""
    return f"{pair.key}, {packet_bytes} bytes"


def mtu_sizes(pair: PairExpectation) -> list[int]:
    """Sizes of IP packets that tell where a path's MTU is if it is not the configured one: what tunnels leave of it."""
    most = min(pair.mtu_bytes, pair.passing_bytes)
    return [most, *(size for size in (most - 8, most - 50, most - 100, 1280, 576, 296, 128) if 100 < size < most)]


def _of_sizes(pairs: Sequence[PairExpectation], lab: str, method: Method) -> tuple[list[ProbeStream], float]:
    """Streams for the first pairs whose paths differ, as many as transfers, with a few packets of each size (RFC 4821,
    7.6); and the time (ns) after the last packet was sent at which all answers have arrived."""
    first = list({pair.links: pair for pair in reversed(pairs)}.values())[::-1][: method.most_transfers]
    streams = []
    longest = 0.0
    for pair in first:
        own = pair.slowest_ns(pair.mtu_bytes)
        sizes = mtu_sizes(pair)
        interval = max(10 * MS, 4 * own * len(sizes))
        streams += [packet_stream(mtu_stream(pair, s), pair.ends, lab, s, interval, MTU_PACKETS) for s in sizes]
        together = len(sizes) * MTU_PACKETS * own
        longest = max(longest, pair.latest_ns(pair.mtu_bytes) + together + 20 * MS)
    return streams, min(longest, method.longest_wait_ns)


def _settling(links: Sequence[LinkExpectation], lab: str, method: Method) -> tuple[list[ProbeStream], float]:
    """Packets that end what an overload left behind in queues, before TCP meets it; and how long after the last one was
    sent all have arrived (ns)."""
    streams, longest = [], 0.0
    for link in links:
        size = probe_bytes(link)
        interval = link.apart_ns(size)
        if packets := min(link.settling_packets(), int(min(method.longest_wait_ns / interval, 1 << 20))):
            streams.append(packet_stream(f"{link.key}{SETTLES}", link.ends, lab, size, interval, packets))
            longest = max(longest, link.latest_ns(size) + interval)
    return streams, longest


def _skip_untold(probing: ProbePlan, expected: Expectations) -> None:
    """Skip the quantities that have no single value, or none that can be measured."""
    for link in expected.links:
        for quantity in ("rate", "queue limit"):
            if why := link.untold(quantity):
                probing.skip(link.key, quantity, why)
    for pair in expected.pairs:
        for quantity, moved in (("base RTT", "delay"), ("TCP goodput", "queue limit")):
            if why := pair.untold(moved):
                probing.skip(pair.key, quantity, why)


def _passes(probing: ProbePlan, pair: PairExpectation, quantity: str, packet_bytes: int) -> bool:
    if packet_bytes > pair.passing_bytes:
        probing.skip(pair.key, quantity, f"packets above {pair.passing_bytes} bytes vanish in a black hole")
    return packet_bytes <= pair.passing_bytes


def _one_per_bottleneck(probing: ProbePlan, pairs: Sequence[PairExpectation], most: int) -> Iterator[PairExpectation]:
    """The first pair of each bottleneck."""
    seen: set[tuple[tuple[str, ...], int]] = set()
    for pair in pairs:
        bottleneck = (pair.links, pair.bottleneck_bps)
        if bottleneck in seen:
            continue
        if len(seen) == most:
            probing.skip(pair.key, "TCP goodput", f"only {most} transfers are made")
            continue
        seen.add(bottleneck)
        yield pair


def packet_stream(
    key: str, ends: ProbeEnds, lab: str, packet_bytes: int, interval_ns: float, packets: int
) -> ProbeStream:
    """One stream of a request to `ewan-node probe`: IP packets of equal size at equal intervals, rounded to 1 ns."""
    return ProbeStream(
        name=key,
        from_=end(lab, ends.source, ends.source_address),
        to=end(lab, ends.sink, ends.sink_address),
        packet_bytes=packet_bytes,
        interval_ns=max(round(interval_ns), 1),
        packets=packets,
    )


@dataclass(frozen=True, slots=True)
class ProbeTurn:
    """The sending times of a link's stream: the interval between packets, and the delay of the first one after the
    probe begins the stream. Both are in ns."""

    interval_ns: float
    start_ns: int = 0


def turns(links: Sequence[LinkExpectation], least_ns: Sequence[float]) -> list[ProbeTurn]:
    """The turn of each link's stream in a probe; each interval is at least the one in `least_ns`.

    Streams whose packets meet, in a half-duplex link or in the ports of switches, have equal intervals and come one
    after the other, so that no packet waits for another one and the probe is never more than the ports carry.
    """
    found = [ProbeTurn(interval) for interval in least_ns]
    together: dict[str, list[int]] = {}
    for number, link in enumerate(links):
        if meets := "switches" if link.switched else link.link if link.other is not None else "":
            together.setdefault(meets, []).append(number)
    for numbers in together.values():
        apart = max(
            2 * links[number].busy_ns(probe_bytes(links[number])) + links[number].dither_ns for number in numbers
        )
        interval = max(len(numbers) * apart, *(least_ns[number] for number in numbers))
        for place, number in enumerate(numbers):
            # The probe begins its streams spread over an interval (emulator/traffic/src/probe/udp.rs).
            later = round(interval * (1 + place / len(numbers) - number / len(links)))
            found[number] = ProbeTurn(interval, later if len(numbers) > 1 else 0)
    return found


def shared_streams(
    key: str, senders: Sequence[ProbeEnds], lab: str, packet_bytes: int, interval_ns: float, packets: int
) -> list[ProbeStream]:
    """The same from each of several senders. The first has the link's own name; the others say that they share it."""
    first, *others = (packet_stream(key, ends, lab, packet_bytes, interval_ns, packets) for ends in senders)
    named = (replace(each, name=f"{key}{SENDER}{number}", shares_with=key) for number, each in enumerate(others, 2))
    return [first, *named]


def link_stream(link: LinkExpectation, turn: ProbeTurn, lab: str, packets: int) -> ProbeStream:
    """A stream of small packets through a link."""
    stream = packet_stream(link.key, link.ends, lab, probe_bytes(link), turn.interval_ns, packets)
    return replace(stream, start_ns=turn.start_ns or None)


def probe_bytes(link: LinkExpectation) -> int:
    """The size of an IP packet that measures delay or loss on a link."""
    return min(PROBE_BYTES, link.mtu_bytes)


def hidden_limit(link: LinkExpectation) -> str | None:
    """Why a full queue does not show its limit, whoever fills it; None: it does."""
    if why := link.untold("queue limit"):
        return why
    if link.own_queue:
        return "the device reports nothing about its queue"
    if link.active_queue is not None:
        return f"{link.active_queue} drops before the limit"
    if link.direction.displace_ppb:
        return "it displaces packets, which then are later"
    if not link.line.constant:
        return "the delay varies, so it does not show how long a packet waited"
    return None
