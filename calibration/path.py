"""Any path, measured with the probes of a verification: `ewan measure lab --path A B`.

In: two ends: nodes of the lab that is up, or network namespaces with an address of ours in each. Out: rows of a path
MTU, of one-way delays both ways, losses, round trips, and what TCP and UDP get through. Nothing is configured, so
nothing is judged: each value comes with its uncertainty. One-way delays need both ends on one clock, or clocks that are
compared (`clocks_ns` of a stream).
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.calibration import budget
from ewan.calibration.judge import Judge, offered_bps
from ewan.calibration.loss_rows import proportion_known
from ewan.calibration.probing import MS, PROBE_BYTES, SECOND
from ewan.calibration.uncertainty import Instrument, quantile, recorded
from ewan.labs.base import codec
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import BITS_PER_BYTE, PPB
from ewan.labs.record import Row
from ewan.labs.record.traffic import Endpoint
from ewan.labs.runtime.probe_documents import (
    DelayProbe,
    FailedResult,
    Probe,
    ProbeResult,
    ProbeStream,
    RttProbe,
    SaturateProbe,
    StreamResult,
    StreamsResult,
    TcpProbe,
    TcpResult,
)

NAMESPACES = Path("/run/netns")
OWN = "/proc/self/ns/net"
SIZES = (9000, 4352, 1500, 1492, 1450, 1400, 1280, 576, 296)
"""The sizes of IP packets that show a path's MTU (RFC 1191, section 7.1, and present-day ones)."""
DELAY_PACKETS, DELAY_GAP_NS = 2_000, MS
TRIPS = 100
TCP_NS, STEADY_NS = 4 * SECOND, 2 * SECOND
FLOOD_NS, FLOOD_SKIP_NS = SECOND, 300 * MS
FLOOD_ABOVE = 1.25
"""Times what TCP got through, offered by UDP."""
DRAIN_NS = SECOND
Send = Callable[[Sequence[Probe]], Sequence[ProbeResult]]
"""Sends probes, and gives a result for each."""


@dataclass(frozen=True, slots=True)
class PathEnd:
    """A network namespace by the path of its file, and an address in it."""

    name: str
    netns: str
    address: str

    @property
    def endpoint(self) -> Endpoint:
        """As a request to `ewan-node probe` has it."""
        return Endpoint(self.netns, self.address)


def end_of(text: str, nodes: Mapping[str, tuple[str, str]]) -> PathEnd:
    """An end by its words: a node of a lab (`nodes`: namespace and address by name), NETNS@ADDRESS, or @ADDRESS of this
    machine's own namespace. UserError, one line, for others."""
    if text in nodes:
        return PathEnd(text, *nodes[text])
    name, at, address = text.partition("@")
    if not at:
        known = f"a node ({', '.join(list(nodes)[:6])})" if nodes else "a node of a lab that is up"
        raise UserError(f'--path "{text}": write {known}, or NETNS@ADDRESS like red@10.0.0.1')
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise UserError(f'--path "{text}": {address!r} is no IP address: write one like red@10.0.0.1') from None
    netns = NAMESPACES / name if name else Path(OWN)
    if not netns.exists() or "/" in name:
        raise UserError(f'--path "{text}": there is no network namespace {name}: ip netns list shows those there are')
    return PathEnd(text, str(netns), address)


def measure(a: PathEnd, b: PathEnd, send: Send, instrument: Instrument) -> tuple[Row, ...]:
    """All rows of a path, first of its way from `a` to `b`."""
    (sizes,) = send(
        [RttProbe("path MTU", tuple(_stream(f"{size}", a, b, size, 20 * MS, 3) for size in SIZES), DRAIN_NS)]
    )
    judge = Judge(f"{a.name} to {b.name}", "", "", "", instrument, None)
    passed = [int(each.name) for each in streams_of(sizes) if each.received_packets]
    if not passed:
        why = "no packet of any size was answered: is the address right, does the other end route back?"
        return (judge.missing("path MTU", "bytes", None, error_of(sizes) or why),)
    mtu = max(passed)
    ways = {"forward": (a, b), "backward": (b, a)}
    delays = tuple(_stream(way, *ends, PROBE_BYTES, DELAY_GAP_NS, DELAY_PACKETS) for way, ends in ways.items())
    trips = _stream("trips", a, b, PROBE_BYTES, 10 * MS, TRIPS)
    tcp = [_transfer(way, *ends) for way, ends in ways.items()]
    asked: list[Probe] = [DelayProbe("delay", delays, DRAIN_NS), RttProbe("rtt", (trips,), DRAIN_NS)]
    one_way, round_trips, *transfers = send([*asked, *tcp])
    rows = [judge.shown("path MTU", "bytes", None, mtu, "the largest of those that were tried")]
    rows += _round_trips(judge, round_trips, instrument)
    for stream in streams_of(one_way):
        rows += _one_way(dataclasses.replace(judge, direction=stream.name), stream, instrument)
    floods = []
    for (way, ends), found in zip(ways.items(), transfers, strict=True):
        own = dataclasses.replace(judge, direction=way)
        if not isinstance(found, TcpResult):
            rows.append(own.missing("TCP goodput", "bit/s", None, error_of(found)))
            continue
        rows.append(_goodput(own, found, instrument))
        interval = mtu * BITS_PER_BYTE * SECOND / max(found.goodput_bps, 1e4) / FLOOD_ABOVE
        flood = _stream(way, *ends, mtu, interval, max(int(FLOOD_NS / interval), 10))
        floods.append(SaturateProbe(f"flood {way}", (codec.replace(flood, skip_ns=FLOOD_SKIP_NS),), DRAIN_NS))
    for found in send(floods) if floods else []:
        for stream in streams_of(found):
            rows.append(_flood(dataclasses.replace(judge, direction=stream.name), stream, instrument))
    return tuple(rows)


def _stream(name: str, a: PathEnd, b: PathEnd, size: int, interval_ns: float, packets: int) -> ProbeStream:
    interval = max(round(interval_ns), 1)
    return ProbeStream(name, a.endpoint, b.endpoint, size, interval, packets, raw=True)


def _transfer(name: str, a: PathEnd, b: PathEnd) -> TcpProbe:
    return TcpProbe(name, a.endpoint, b.endpoint, "cubic", TCP_NS, STEADY_NS, connect_timeout_ns=5 * SECOND)


def streams_of(result: ProbeResult) -> tuple[StreamResult, ...]:
    """None of a probe that has none, or that failed."""
    return result.streams if isinstance(result, StreamsResult) else ()


def error_of(result: ProbeResult) -> str:
    """Why it failed; empty where it did not."""
    return result.error if isinstance(result, FailedResult) else ""


def _one_way(judge: Judge, stream: StreamResult, instrument: Instrument) -> Iterator[Row]:
    ordered = sorted(stream.delays_ns or ())
    for share in (0.5, 0.99):
        name = f"delay p{round(100 * share)}"
        clocks_ns = stream.clocks_ns or 0
        known = budget.delay_quantile(ordered, share, instrument, clocks_ns=clocks_ns) if ordered else None
        if known is None:
            yield judge.missing(name, "ns", None, f"{len(ordered)} packets arrived, too few")
            continue
        row = judge.shown(name, "ns", None, quantile(ordered, share), f"of {len(ordered)} packets")
        yield codec.replace(row, uncertainty=recorded(known[0]))
    sent = stream.sent_packets
    lost = max(stream.lost_packets - stream.socket_drops_packets, 0)
    interval = proportion_known(lost, sent, 1.0) if sent else None
    row = judge.shown("loss", "ppb", None, lost / max(sent, 1) * PPB, f"{lost} of {sent}")
    yield codec.replace(row, uncertainty=interval)


def _round_trips(judge: Judge, result: ProbeResult, instrument: Instrument) -> Iterator[Row]:
    for stream in streams_of(result):
        ordered = sorted(stream.delays_ns or ())
        known = budget.round_trip(ordered, 2, instrument) if ordered else None
        if known is None:
            yield judge.missing("RTT", "ns", None, f"{len(ordered)} answers, too few")
            continue
        row = judge.shown("RTT", "ns", None, quantile(ordered, 0.5), f"median of {len(ordered)} round trips")
        yield codec.replace(row, uncertainty=recorded(known[0]))


def _goodput(judge: Judge, found: TcpResult, instrument: Instrument) -> Row:
    note = f"{found.congestion}, {found.retransmitted_segments} segments retransmitted"
    row = judge.shown("TCP goodput", "bit/s", None, found.goodput_bps, note)
    parts, _ = budget.goodput(found.goodput_bps, found.steady_ns, found.segment_bytes, instrument)
    return codec.replace(row, uncertainty=recorded(parts))


def _flood(judge: Judge, stream: StreamResult, instrument: Instrument) -> Row:
    steady, size = stream.steady, stream.packet_bytes
    if steady is None or steady.packets < 8:
        return judge.missing("UDP rate", "bit/s", None, "too few packets arrived")
    window, packets = steady.fitted_window_ns, steady.packets
    measured = packets * size * BITS_PER_BYTE * SECOND / window
    offered = offered_bps(stream, size)
    note = "of IP packets" if offered > 1.02 * measured else "of IP packets: this host could offer no more"
    parts, _ = budget.rate(measured, window, packets, ends_ns=0.0, others=0.0, instrument=instrument)
    return codec.replace(judge.shown("UDP rate", "bit/s", None, measured, note), uncertainty=recorded(parts))
