"""The demand of a run on a virtual kernel: packets, timers and system calls, counted from its schedule. Pure.

In: the plan, and the transfers with their ends and times. Out: a `Demand` (labs/record/demand.py). A transfer of a
volume sends its volume. A transfer that the clock ends sends what its congestion window lets it (`windows.py`); a
session as many requests as fit; UDP and messages their configured amount. A draw from a law of sizes is taken as the
law's mean."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import assert_never

from ewan.generator.scenario import entries
from ewan.generator.scenario.fields import ScenarioStep
from ewan.generator.scenario.flow_paths import partners
from ewan.generator.scenario.flows import FlowSettings, packet_interval, piece_bytes, whole_bytes, written_bps
from ewan.generator.scenario.kinds import Kind
from ewan.generator.scenario.laws import drawn_mean, mean, share_above
from ewan.generator.scenario.network import HostPath, Network
from ewan.generator.scenario.windows import FIRST_WINDOW, Bottleneck, Cross, Stream, deliver
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Hop, Plan
from ewan.labs.record.demand import Demand
from ewan.labs.record.traffic import usual
from ewan.labs.runtime.program import Command, Program

_BULK = ("bulk", "bidirectional", "quic")
"""The kinds of steps whose transfers a congestion control of some kind limits."""
_COUNTED = ("iperf3", "ITGSend", "ITGRecv", "ewan-udt", "ewan-quic", "ewan-aioquic", "ewan-s2n-quic", "ewan-quic-go")
"""Programs whose demand is counted with their transfers."""
IPV4_TCP_BYTES = 52
"""Bytes of the headers of a segment: IPv4, TCP and its timestamps."""
IPV4_UDP_BYTES = 28
REPORTS_A_SECOND = 30  # of a receiver of media, at most one a frame
SEGMENTS_AN_ACK = 2  # RFC 9293, section 3.8.6.3
PACKETS_AN_ACK = {"s2n-quic": 10}
"""The same of libraries of QUIC that acknowledge more at once."""
PIGGYBACK = 2
"""Where both ends send, about every other ACK still has a packet of its own."""
RECORD_BYTES = 8_000  # D-ITG over TCP
PAYLOAD_BYTES = {"quinn": 1425, "aioquic": 1172, "s2n-quic": 1445, "quic-go": 1400}
"""Bytes of the stream in a full packet of each library of QUIC."""
MEDIA_USES = 0.85
"""The part of its share of a bottleneck that media uses on average, which it approaches from below."""
ACK_BYTES = 90
"""With its framing."""
CONNECTION_PACKETS = 7
"""SYN, its answer, the ACK; two FINs and their ACKs."""


@dataclass(frozen=True, slots=True)
class DemandMember:
    """One member of a step; `ranks` of messages, else source and sink."""

    step: ScenarioStep
    settings: FlowSettings
    source: str
    sink: str
    start_ns: int
    stop_ns: int | None
    ranks: tuple[str, ...] = ()
    paced_bps: int | None = None
    """The rate to which its source is limited."""


@dataclass(slots=True)
class _PacketsOnPath:
    """Packets of one size on one way."""

    way: HostPath
    packets: float
    bytes: float
    rtt_ns: int


@dataclass(slots=True)
class _Count:
    """Adds up."""

    sent: list[_PacketsOnPath] = field(default_factory=list)
    entries: float = 0.0
    direct: float = 0.0
    """The entries, of `entries`, that are direct (labs/record/demand.py)."""
    program_ns: float = 0.0
    flows: int = 0
    queued: float = 0.0


def of(plan: Plan, forwarding: Forwarding, asked: Sequence[DemandMember], program: Program) -> Demand:
    """The demand of one run."""
    return _Counter(plan, forwarding, asked, program).demand()


class _Counter:
    def __init__(self, plan: Plan, forwarding: Forwarding, asked: Sequence[DemandMember], program: Program) -> None:
        self._plan, self._asked, self._program = plan, asked, program
        self._network = Network(plan, forwarding)
        self._count = _Count()
        self._end_ns = min(program.expected_ns or program.longest_ns, program.longest_ns)

    def demand(self) -> Demand:
        """The sum of the demands of all steps."""
        bulk = [each for each in self._asked if each.step.kind in _BULK]
        for each, packets in zip(bulk, self._bulk(bulk), strict=True):
            self._tcp(each, packets)
        for each in self._asked:
            self._other(each)
        for command in self._program.commands:
            if PurePath(command.argv[0]).name not in _COUNTED:
                self._command(command)
        count, lasts_s = self._count, max(self._end_ns / NS_PER_SECOND, 1e-3)
        packets = sum(each.packets * each.way.receives for each in count.sent)
        flight = sum(each.packets / lasts_s * each.rtt_ns / 2 / NS_PER_SECOND for each in count.sent) + count.queued
        return Demand(
            packets=round(packets),
            mixed_packets=round(packets * (1 - self._alone())),
            paced_packets=round(self._paced(lasts_s)),
            flight_packets=round(flight),
            flows=sum(each.settings.streams for each in bulk),
            entries=round(count.entries + self._looks()),
            direct_entries=round(count.direct),
            program_ns=round(count.program_ns),
        )

    # Everybody

    def _looks(self) -> float:
        """The entries for looks at the lab, at links and at flows."""
        lab = entries.LAB + entries.NODE * len(self._plan.nodes) + entries.THREADS * self._count.flows
        links = 0.0
        if self._program.watch_ns:
            links = entries.LOOK * max(len(self._plan.links), 1) * self._end_ns / self._program.watch_ns
        traffic, flows = self._program.traffic, 0.0
        for every_ns in () if traffic is None else (traffic.sample_ns, traffic.series_ns):
            if every_ns and traffic is not None:
                spans = [self._span_ns(flow.start_ns, flow.stop_ns) for flow in traffic.flows]
                flows += (entries.TICK / 2 * self._end_ns + entries.SAMPLE * sum(spans)) / every_ns
        return lab + links + flows

    def _span_ns(self, start_ns: int, stop_ns: int | None) -> int:
        return max(min(self._end_ns if stop_ns is None else stop_ns, self._end_ns) - start_ns, 0)

    def _alone(self) -> float:
        """The probability that the packet before a packet was of the same hosts: the sum of the squares of their
        shares."""
        shares: dict[tuple[Hop, ...], float] = defaultdict(float)
        for each in self._count.sent:
            shares[each.way.hops] += each.packets
        total = sum(shares.values())
        # ACKs go the other way of the flow that they are of: a single flow has two ways.
        return min(2 * sum((share / total) ** 2 for share in shares.values()), 1.0) if total else 1.0

    def _send(self, source: str, sink: str, packets: float, size: float = ACK_BYTES) -> None:
        if packets > 0:
            rtt_ns = self._network.forwarding.rtt_ns(source, sink)
            self._count.sent.append(_PacketsOnPath(self._network.way(source, sink), packets, size, rtt_ns))

    def _paced(self, lasts_s: float) -> float:
        """Packets that find a card busy: as many as the card is used."""
        busy: dict[Hop, float] = defaultdict(float)
        rate_bps = self._network.forwarding.rate_bps
        for each in self._count.sent:
            for hop in each.way.cards:
                busy[hop] += each.packets * each.bytes * BITS_PER_BYTE / (rate_bps(hop) or 1) / lasts_s
        return sum(each.packets * min(busy[hop], 1.0) for each in self._count.sent for hop in each.way.cards)

    def _segment(self, each: DemandMember) -> int:
        own = self._network.mtu(each.source, each.sink) - IPV4_TCP_BYTES
        named: int | None = each.settings.socket.mss_bytes
        own = min(own, PAYLOAD_BYTES.get(each.settings.generator, own))
        return min(own, named - 12) if named else own

    # Bulk

    def _bulk(self, members: Sequence[DemandMember]) -> list[float]:
        """Segments of each member, all its streams together."""
        groups: dict[Hop | None, list[int]] = defaultdict(list)
        crossing: dict[Hop, int] = defaultdict(int)
        others: dict[Hop, int] = defaultdict(int)
        for each in self._asked:
            for hop in () if each.ranks else self._network.way(each.source, each.sink).hops:
                others[hop] += 1
        for each in members:
            for hop in self._network.way(each.source, each.sink).hops:
                crossing[hop] += each.settings.streams
        for number, each in enumerate(members):
            rates = [
                (rate / crossing[hop], -others[hop], place, hop)
                for place, hop in enumerate(self._network.way(each.source, each.sink).hops)
                if (rate := self._network.forwarding.rate_bps(hop))
            ]
            groups[min(rates)[3] if rates else None].append(number)
        found = [0.0] * len(members)
        for bottleneck, numbers in groups.items():
            for number, packets in zip(numbers, self._over(bottleneck, [members[n] for n in numbers]), strict=True):
                found[number] = packets
        return found

    def _over(self, hop: Hop | None, members: Sequence[DemandMember]) -> list[float]:
        """Segments of those that share a bottleneck."""
        whole = [self._volume(each) for each in members]
        if hop is None or all(each.stop_ns is None for each in members):
            if hop is not None:
                self._queue(hop, 1.0)
            return [0.0 if math.isinf(packets) else packets for packets in whole]
        at, streams = self._network.bottleneck(hop), []
        for each, packets in zip(members, whole, strict=True):
            streams.append([self._stream(each, packets / each.settings.streams) for _ in range(each.settings.streams)])
        every = [stream for those in streams for stream in those]
        deliver(every, at, self._cross(hop, at))
        share = sum(each.delivered for each in every) / at.pps / max(self._end_ns / NS_PER_SECOND, 1e-3)
        self._queue(hop, share)
        return [sum(stream.delivered for stream in those) for those in streams]

    def _volume(self, each: DemandMember) -> float:
        volume = whole_bytes(each.step.work)
        return math.inf if volume is None else volume / self._segment(each)

    def _queue(self, hop: Hop, used: float) -> None:
        """Half of a buffer waits on average where a link is always used."""
        buffer = self._network.bottleneck(hop).buffer
        self._count.queued += buffer / 2 * used if math.isfinite(buffer) else 0.0

    def _stream(self, each: DemandMember, packets: float) -> Stream:
        socket = each.settings.socket
        named = [getattr(socket, f"{key}_bytes") for key in ("window", "send_buffer", "receive_buffer")]
        window = min((size / self._segment(each) for size in named if size is not None), default=math.inf)
        first = self._network.way(each.source, each.sink).hops[0]
        return Stream(
            start_s=each.start_ns / NS_PER_SECOND,
            stop_s=math.inf if each.stop_ns is None else each.stop_ns / NS_PER_SECOND,
            rtt_s=self._network.rtt_s(each.source, each.sink),
            congestion=each.settings.congestion or "cubic",
            packets=packets,
            line_pps=min(self._network.pps(first), self._paced_pps(each, first), self._written_pps(each))
            / each.settings.streams,
            most_window=window,
        )

    def _written_pps(self, each: DemandMember) -> float:
        """Segments a second that an application writes that limits its flow."""
        bps = written_bps(each.step.work)
        return math.inf if bps is None else bps / BITS_PER_BYTE / self._segment(each)

    def _paced_pps(self, each: DemandMember, first: Hop) -> float:
        """Full packets a second that leave a source that is paced."""
        return math.inf if each.paced_bps is None else each.paced_bps / BITS_PER_BYTE / self._network.framed(first)

    def _cross(self, hop: Hop, at: Bottleneck) -> list[Cross]:
        """The other traffic that crosses a bottleneck."""
        found = []
        for each in self._asked:
            if each.step.kind not in ("udp", "arrivals") or hop not in self._network.way(each.source, each.sink).hops:
                continue
            start_s = each.start_ns / NS_PER_SECOND
            span_s = self._span_ns(each.start_ns, each.stop_ns) / NS_PER_SECOND
            if each.step.kind == "udp":
                packets = self._datagrams(each)
                found.append(Cross(start_s, start_s + span_s, packets / max(span_s, 1e-3)))
                continue
            work, segment = each.step.work, self._segment(each)
            count = self._arrivals(each)
            span_s = min(span_s, count * mean(work.interval) / NS_PER_SECOND)
            pps = count * drawn_mean(work.size) / segment / max(span_s, 1e-3)
            bursts, burst = 0.0, FIRST_WINDOW
            while (beyond := share_above(work.size, (2 * burst - FIRST_WINDOW) * segment)) > 1e-3:
                bursts += beyond if burst > at.buffer else 0.0
                burst *= 2
            found.append(Cross(start_s, start_s + span_s, pps, bursts * count / max(span_s, 1e-3)))
        return found

    def _tcp(self, each: DemandMember, packets: float) -> None:
        """Adds the demand of a bulk transfer: data, ACKs and connections."""
        both, streams = each.step.kind == "bidirectional", each.settings.streams
        packets *= self._pieces(each)
        acks = packets / PACKETS_AN_ACK.get(each.settings.generator, SEGMENTS_AN_ACK) / (PIGGYBACK if both else 1)
        full = self._network.framed(self._network.way(each.source, each.sink).hops[0])
        for ends, sends in (((each.source, each.sink), True), ((each.sink, each.source), both)):
            self._send(*ends, packets * sends, full)
            self._send(*ends, acks * (both or not sends) + CONNECTION_PACKETS / 2 * streams)
        match each.settings.generator:
            case "iperf3":
                self._count.entries += 2 * entries.IPERF3
                self._direct(entries.IPERF3_SEGMENT * packets * (1 + both))
            case "ditg":
                records = packets * self._segment(each) / RECORD_BYTES
                self._count.entries += 2 * entries.DITG + entries.DITG_DATAGRAM * records
            case "udt":
                self._count.entries += 2 * entries.UDT + entries.UDT_PACKET * packets
                self._count.entries += entries.UDT_SECOND * self._lasts_s(each, packets)
            case "s2n-quic":
                self._count.entries += 2 * entries.QUINN
                self._direct(entries.S2N_PACKET * packets)
                self._count.program_ns += entries.S2N_PACKET_NS * packets
            case "quic-go":
                self._count.entries += 2 * entries.QUIC_GO + entries.QUIC_GO_SWITCHES * packets
                self._direct(entries.QUIC_GO_PACKET * packets)
                self._count.program_ns += entries.QUIC_GO_PACKET_NS * packets
            case "quinn":
                self._count.entries += 2 * entries.QUINN
                self._direct(entries.QUINN_PACKET * packets + entries.QUINN_OBJECT * self._objects(each, packets))
                self._count.program_ns += entries.QUINN_PACKET_NS * packets
            case "aioquic":
                self._count.entries += 2 * entries.AIOQUIC
                self._direct(entries.AIOQUIC_PACKET * packets)
                self._count.program_ns += 2 * entries.AIOQUIC_NS + entries.AIOQUIC_PACKET_NS * packets
                self._count.program_ns += entries.AIOQUIC_OBJECT_NS * self._objects(each, packets)
            case _:
                self._count.flows += streams * (1 + both)

    def _direct(self, calls: float) -> None:
        """Entries by calls that a program makes without sleeping."""
        self._count.entries += calls
        self._count.direct += calls

    def _pieces(self, each: DemandMember) -> float:
        """The factor by which packets of QUIC are more than the volume's, where each write, or each object, begins
        one."""
        work = each.step.work
        if each.step.kind != "quic" or (size := piece_bytes(work)) is None:
            return 1.0
        full = size / self._segment(each)
        return math.ceil(full) / full

    def _objects(self, each: DemandMember, packets: float) -> float:
        """The number of objects over HTTP/3 in so many packets. Asking for one takes a packet more."""
        if each.step.work.http3 is None:
            return 0.0
        objects = packets / math.ceil(mean(each.step.work.http3.size) / self._segment(each))
        self._send(each.sink, each.source, objects)
        return objects

    def _lasts_s(self, each: DemandMember, packets: float) -> float:
        """The duration of a transfer (s): until the clock ends it, or the time of its volume at the rate of the slowest
        link on its way."""
        if each.stop_ns is not None:
            return self._span_ns(each.start_ns, each.stop_ns) / NS_PER_SECOND
        rates = [self._network.pps(hop) for hop in self._network.way(each.source, each.sink).hops]
        return packets / min(rates, default=math.inf)

    # Flows that are no bulk transfers

    def _other(self, each: DemandMember) -> None:
        kind: Kind = each.step.kind
        match kind:
            case "bulk" | "bidirectional" | "quic" | "run":
                return
            case "udp":
                self._udp(each)
            case "arrivals":
                self._short(each)
            case "requests":
                self._requests(each)
            case "messages":
                self._messages(each)
            case "media":
                self._media(each)
            case never:
                assert_never(never)

    def _datagrams(self, each: DemandMember) -> float:
        work = each.step.work
        interval = mean(work.interval) if work.interval else float(usual(packet_interval(each.step)))
        share = 1.0 if work.on is None else mean(work.on) / (mean(work.on) + mean(work.off))
        fit = self._span_ns(each.start_ns, each.stop_ns) / max(interval, 1.0) * share
        return fit if work.count is None else float(work.count) if each.stop_ns is None else min(work.count, fit)

    def _udp(self, each: DemandMember) -> None:
        packets, count = self._datagrams(each), self._count
        self._send(each.source, each.sink, packets, mean(each.step.work.size) + IPV4_UDP_BYTES)
        span_s = self._span_ns(each.start_ns, each.stop_ns) / NS_PER_SECOND
        match each.settings.generator:
            case "iperf3":
                count.entries += 2 * entries.IPERF3 + entries.IPERF3_DATAGRAM * packets + entries.IPERF3_SECOND * span_s
            case "ditg":
                whole = each.step.work.interval is None or each.step.work.interval.kind == "constant"
                count.entries += 2 * entries.DITG + (entries.DITG_DATAGRAM if whole else entries.WAIT) * packets
            case _:
                count.flows += 1
                count.entries += entries.UDP * packets

    def _media(self, each: DemandMember) -> None:
        """A source at the rate that fits, between its bounds; one report for each of its reports' intervals."""
        work = each.step.work
        span_s = self._span_ns(each.start_ns, each.stop_ns) / NS_PER_SECOND
        path = self._network.forwarding.path(each.source, each.sink)
        sharing = sum(self._shares(each, other) for other in self._asked)
        share = MEDIA_USES * path.bottleneck_bps / sharing if path.bottleneck_bps else work.most.bps
        most = min(work.most.bps, share)
        bps = work.rate.bps if work.control == "none" else max(work.least.bps, most)
        packets = span_s * max(bps / BITS_PER_BYTE / work.packet.bytes, work.fps)
        self._send(each.source, each.sink, packets, bps / BITS_PER_BYTE * span_s / packets + IPV4_UDP_BYTES)
        self._send(each.sink, each.source, span_s * REPORTS_A_SECOND)
        self._count.flows += 1
        self._direct(entries.MEDIA * packets + entries.MEDIA_SECOND * span_s)

    def _shares(self, each: DemandMember, other: DemandMember) -> bool:
        """Return whether another media flow is on a link of this one's path at the same time."""
        if other.step.kind != "media" or other.start_ns >= (each.stop_ns or 0) or each.start_ns >= (other.stop_ns or 0):
            return False
        hops = self._network.way(each.source, each.sink).hops
        return not set(hops).isdisjoint(self._network.way(other.source, other.sink).hops)

    def _arrivals(self, each: DemandMember) -> float:
        work = each.step.work
        fit = self._span_ns(each.start_ns, each.stop_ns) / max(mean(work.interval), 1.0)
        return fit if work.count is None else float(work.count) if each.stop_ns is None else min(work.count, fit)

    def _short(self, each: DemandMember) -> None:
        count = self._arrivals(each)
        segments = count * drawn_mean(each.step.work.size) / self._segment(each)
        self._send(each.source, each.sink, segments + count * CONNECTION_PACKETS / 2, self._segment(each))
        self._send(each.sink, each.source, segments / SEGMENTS_AN_ACK + count * CONNECTION_PACKETS / 2)
        self._count.entries += entries.ARRIVAL * count
        self._count.flows += 1

    def _requests(self, each: DemandMember) -> None:
        work, segment = each.step.work, self._segment(each)
        rtt_ns = self._network.forwarding.rtt_ns(each.source, each.sink)
        path = self._network.forwarding.path(each.sink, each.source)
        span_ns = self._span_ns(each.start_ns, each.stop_ns)
        size = drawn_mean(work.response)
        rounds = 1 + math.log2(1 + size / segment / FIRST_WINDOW) + work.new_connection
        sending_ns = size * BITS_PER_BYTE * NS_PER_SECOND / path.bottleneck_bps if path.bottleneck_bps else 0.0
        count = max(span_ns / max(mean(work.think) + rounds * rtt_ns + sending_ns, 1.0), 1.0)
        if work.count is not None:
            count = float(work.count) if each.stop_ns is None else min(count, work.count)
        asked, answered = (max(drawn_mean(law) / segment, 1.0) for law in (work.request, work.response))
        opened = CONNECTION_PACKETS / 2 * (count if work.new_connection else 1)
        self._send(each.source, each.sink, count * (asked + answered / SEGMENTS_AN_ACK) + opened)
        self._send(each.sink, each.source, count * (answered + asked / SEGMENTS_AN_ACK) + opened, segment)
        self._count.entries += (entries.REQUEST + (entries.ARRIVAL if work.new_connection else 0)) * count
        self._count.flows += 1

    def _messages(self, each: DemandMember) -> None:
        work, ranks = each.step.work, each.ranks
        size = 1.0 if work.size is None else drawn_mean(work.size)
        segments = max(math.ceil(size / self._segment(each)), 1)
        pairs = partners(work.pattern, len(ranks))
        for sender, receiver in sorted(pairs):
            # ACKs ride on what comes back where something does.
            acks = segments / SEGMENTS_AN_ACK
            self._send(ranks[sender], ranks[receiver], work.iterations * segments + CONNECTION_PACKETS / 2, size)
            self._send(ranks[receiver], ranks[sender], work.iterations * acks)
        messages = len(pairs) * work.iterations
        if each.settings.generator == "openmpi":
            # A barrier is passed on in rounds, each to twice as many.
            rounds = math.ceil(math.log2(len(ranks))) if work.pattern == "barrier" else 1
            wait_s = rounds * max(self._network.rtt_s(ranks[a], ranks[b]) for a, b in pairs) / 2
            iteration = entries.MPI_ITERATION + entries.MPI_SECOND * entries.MPI_LATE * wait_s
            self._count.entries += len(ranks) * (entries.MPI + iteration * work.iterations)
            return
        self._count.entries += entries.MESSAGE * messages + entries.ITERATION * len(ranks) * work.iterations
        self._count.flows += len(ranks)

    def _command(self, command: Command) -> None:
        """A program of which nothing is known, but of ping."""
        self._count.entries += entries.COMMAND
        if command.argv[0] != "ping":
            return
        words = dict(itertools.pairwise(command.argv))
        interval_s = _number(words.get("-i"), entries.PING_INTERVAL_S)
        span_s = (self._end_ns - command.at_ns) / NS_PER_SECOND
        count = _number(words.get("-c"), span_s / interval_s if interval_s else 0.0)
        self._count.entries += entries.PING * count
        if command.argv[-1] in self._network.kinds and self._answer_s(command.node, command.argv[-1]) > interval_s:
            self._count.entries += entries.WAIT * count

    def _answer_s(self, source: str, sink: str) -> float:
        """The time (s) from a request to its answer, through queues that bulk transfers fill and no discipline keeps
        short."""
        full = {
            hop
            for each in self._asked
            if each.step.kind in _BULK
            for hop in self._network.way(each.source, each.sink).hops
        }
        waits = 0.0
        for hop in (*self._network.way(source, sink).hops, *self._network.way(sink, source).hops):
            waits += self._network.fills(hop) if hop in full else 0.0
        return self._network.rtt_s(source, sink) + waits


def _number(text: str | None, otherwise: float) -> float:
    """The value of a program's option, where it is a number; `otherwise` where it is none or absent."""
    try:
        return otherwise if text is None else float(text)
    except ValueError:
        return otherwise
