"""The packets that are sent to characterise a path. Pure.

In: the ends of a path, and the estimates so far. Out: probes for `ewan-node probe`. Trains are streams of one probe,
each with a start time of its own, which is in no phase with any periodic traffic on the path."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ewan.calibration.expectation import BYTE_NS
from ewan.calibration.path import SIZES, PathEnd
from ewan.calibration.probing import MS, PROBE_BYTES, SECOND
from ewan.labs.base.codec import replace
from ewan.labs.runtime.probe_documents import DelayProbe, LossProbe, OfStreams, ProbeStream, RttProbe, SaturateProbe

Ways = Mapping[str, tuple[PathEnd, PathEnd]]
"""By "forward" and "backward": who sends to whom."""

DRAIN_NS = SECOND
SIZES_GAP_NS, SIZES_SLOW_NS = 20 * MS, 6 * SECOND
"""Between two packets of a size; the second one where nothing came back at first: then it may be a slow path."""
TRIPS, TRIP_GAP_NS = 150, 20_030_000
TRIP_SHARE = 0.1
"""Round trips take at most this share of the capacity, so that they find no queue."""
LONGEST_TRIPS_NS = 60 * SECOND
FIRST_BYTES = 296
"""Bytes of the packets of the trains that estimate the speed of the path before its MTU is known."""
FIRST_TRAINS, FIRST_PACKETS, FIRST_GAP_NS = 16, 4, 150 * MS
TRAINS, TRAIN_PACKETS = 40, 32
AT_ONCE_NS = 1_000
"""Between two packets that are sent back to back."""
BATCH_PACKETS = 16
CATCHING_UP = 2
"""Packets at once of a stream that is not sent back to back: a sender that paused then makes up for it
(emulator/traffic/src/probe)."""
LONGEST_TRAINS_NS = 10 * SECOND
TRAIN_SHARE = 0.1
"""The share of the capacity that trains take: the share that others leave must be more, or they fill the buffer."""
GOLDEN = (math.sqrt(5) - 1) / 2
OVERLOAD = 2.0
"""Times the capacity, to fill the buffer."""
LOAD_NS, LONGEST_LOAD_NS = 300 * MS, 12 * SECOND
"""The first load that is to fill the buffer, and the longest one."""
LOAD_GROWS = 4
FULL_LOSES = 0.1
"""The least share of loss of a load that fills the buffer; with less, the host could not send it, or nothing limits
it."""
LEAST_LOAD_PACKETS, MOST_LOAD_PACKETS = 400, 400_000
CROSS_PACKETS = 4_000
"""In all trains that tell of cross traffic; a train has at most a hundredth of it."""
CROSS_ABOVE = 1.5
"""Times the capacity at which these are sent."""
CROSS_LEAST = 1.1
"""Times the capacity that what arrives of them must be, where the path loses some."""
CROSS_SHORTEST = 16
LOSS_PACKETS, LOSS_SHARE, LONGEST_LOSS_NS = 20_000, 0.1, 10 * SECOND
"""The number of packets that measure loss, the share of the capacity that they take, and their longest time."""

LOSS_BATCHES, LEAST_OF_BATCH = 40, 20
"""The packets that tell of loss are counted in so many batches, each of so many packets at least."""


@dataclass(frozen=True, slots=True)
class Load:
    """Traffic that is sent on purpose while a path of the virtual clock is measured: at a constant rate of IP
    packets."""

    source: PathEnd
    sink: PathEnd
    rate_bps: int
    packet_bytes: int
    words: str


def sizes(ways: Ways, gap_ns: int) -> OfStreams:
    """Packets of several sizes, to find the MTU."""
    a, b = ways["forward"]
    drain_s = max(1, round(gap_ns / SECOND))
    return _probe(RttProbe, "path MTU", [_stream(f"{size}", a, b, size, gap_ns, 3) for size in SIZES], drain_s)


def first(ways: Ways, longest_ns: float, loads: Sequence[Load]) -> OfStreams:
    """Short trains both ways, which estimate the rate of the path roughly; `longest_ns`: the longest round trip so far,
    in which a train passes."""
    gap = max(FIRST_GAP_NS, round(longest_ns))
    trains = [
        _train(f"{way} {k}", ends, FIRST_BYTES, AT_ONCE_NS, FIRST_PACKETS, _start_ns(k, gap))
        for way, ends in ways.items()
        for k in range(FIRST_TRAINS)
    ]
    return beside(_probe(DelayProbe, "first trains", trains, math.ceil(2 * gap / SECOND)), loads)


def trips(ways: Ways, first_bps: Mapping[str, float], loads: Sequence[Load]) -> OfStreams:
    """Round trips that do not wait for each other; `first_bps`: about how fast the path is each way."""
    a, b = ways["forward"]
    gap = max(TRIP_GAP_NS, PROBE_BYTES * BYTE_NS / min(first_bps.values()) / TRIP_SHARE)
    packets = min(TRIPS, int(LONGEST_TRIPS_NS / gap) + 20)
    return beside(
        _probe(RttProbe, "round trips", [_stream("trips", a, b, PROBE_BYTES, gap, packets)], _drain_s(gap)), loads
    )


def back_to_back(ways: Ways, packet_bytes: int, first_bps: Mapping[str, float], loads: Sequence[Load]) -> OfStreams:
    """Trains both ways whose dispersion is the capacity's; `first_bps`: a rough estimate of it."""
    streams, longest = [], 0.0
    for way, ends in ways.items():
        own = packet_bytes * BYTE_NS / first_bps[way]
        packets = max(min(TRAIN_PACKETS, int(LONGEST_TRAINS_NS / TRAINS * TRAIN_SHARE / own)), 3)
        gap = max(20 * MS, packets * own / TRAIN_SHARE)
        longest = max(longest, packets * own)
        streams += [
            _train(f"{way} {k}", ends, packet_bytes, AT_ONCE_NS, packets, _start_ns(k, gap)) for k in range(TRAINS)
        ]
    return beside(_probe(DelayProbe, "trains", streams, _drain_s(longest)), loads)


def load_ns(number: int) -> float:
    """The length (ns) of load number `number`, from 0; each is longer than the one before."""
    return min(LOAD_NS * float(LOAD_GROWS**number), LONGEST_LOAD_NS)


def overload(
    way: str,
    ends: tuple[PathEnd, PathEnd],
    packet_bytes: int,
    capacity_bps: float,
    lasting_ns: float,
    more: Sequence[Load],
) -> OfStreams:
    """More than the bottleneck carries, for so long."""
    interval = packet_bytes * BYTE_NS / capacity_bps / OVERLOAD
    packets = min(max(math.ceil(lasting_ns / interval), LEAST_LOAD_PACKETS), MOST_LOAD_PACKETS)
    stream = replace(_stream(way, *ends, packet_bytes, interval, packets), batch_packets=CATCHING_UP)
    # The buffer's last packets come when all before them have.
    drain_s = max(4, math.ceil(packets * interval / 4 / SECOND))
    return beside(_probe(SaturateProbe, f"load {way}", [stream], drain_s), more)


def stretched(
    way: str,
    ends: tuple[PathEnd, PathEnd],
    packet_bytes: int,
    capacity_bps: float,
    buffer_bytes: float | None,
    more: Sequence[Load],
    lead: int = 0,
) -> OfStreams:
    """Trains that come faster than the bottleneck serves them, each shorter than its buffer; after so many
    packets (`lead`) that the bottleneck passes as a burst."""
    own = packet_bytes * BYTE_NS / capacity_bps
    room = CROSS_SHORTEST if buffer_bytes is None else int(buffer_bytes / packet_bytes)
    packets = max(min(room, CROSS_PACKETS // 100), CROSS_SHORTEST) + lead
    count = max(min(CROSS_PACKETS // packets, int(LONGEST_TRAINS_NS * TRAIN_SHARE / (packets * own))), 10)
    gap = max(10 * MS, packets * own / TRAIN_SHARE)
    streams = [
        _train(f"{way} {k}", ends, packet_bytes, own / CROSS_ABOVE, packets, _start_ns(k, gap)) for k in range(count)
    ]
    return beside(_probe(DelayProbe, f"cross {way}", streams, _drain_s(packets * own)), more)


def losses(ways: Ways, capacity_bps: Mapping[str, float], loads: Sequence[Load]) -> OfStreams:
    """Many small packets both ways, which take little of the capacity; in batches, whose counts show bursts."""
    streams = []
    for way, ends in ways.items():
        interval = max(2 * PROBE_BYTES * BYTE_NS / capacity_bps[way] / LOSS_SHARE, 50_000)
        packets = max(min(LOSS_PACKETS, int(LONGEST_LOSS_NS / interval)), 20)
        count = max(min(LOSS_BATCHES, packets // LEAST_OF_BATCH), 1)
        each = packets // count
        for k in range(count):
            stream = _stream(f"{way} {k}", *ends, PROBE_BYTES, interval, each)
            streams.append(replace(stream, raw=False, start_ns=round(k * each * interval)))
    return beside(_probe(LossProbe, "loss", streams, _drain_s(0.0)), loads)


def beside(probe: OfStreams, loads: Sequence[Load]) -> OfStreams:
    """The probe with this load beside it, from its start to its end, in packets of the length `MTU`."""
    lasting, streams = lasts_ns(probe), list(probe.streams)
    for number, load in enumerate(loads):
        interval = load.packet_bytes * BYTE_NS / load.rate_bps
        packets = math.ceil(lasting / interval)
        stream = _stream(f"others {number}", load.source, load.sink, load.packet_bytes, interval, packets)
        streams.append(replace(stream, raw=False))
    return replace(probe, streams=tuple(streams))


def lasts_ns(probe: OfStreams) -> int:
    """The time (ns) from the beginning of a probe to the end of its last packet's turn."""
    return max((each.start_ns or 0) + each.lasts_ns for each in probe.streams)


def _drain_s(longest_ns: float) -> int:
    """The seconds to wait for the last packets, which are under way for `longest_ns`."""
    return 1 + math.ceil(2 * longest_ns / SECOND) if longest_ns > SECOND / 4 else 1


def _start_ns(number: int, gap_ns: float) -> int:
    """The start (ns) of a train: up to half a gap later than its turn, by a sequence that is even and has no period
    (Weyl)."""
    return round((1 + number + (number * GOLDEN) % 1 / 2) * gap_ns)


def _train(
    name: str, ends: tuple[PathEnd, PathEnd], packet_bytes: int, interval_ns: float, packets: int, start_ns: int
) -> ProbeStream:
    batch = BATCH_PACKETS if interval_ns <= AT_ONCE_NS else CATCHING_UP
    stream = _stream(name, *ends, packet_bytes, interval_ns, packets)
    return replace(stream, batch_packets=batch, start_ns=start_ns)


def _stream(name: str, a: PathEnd, b: PathEnd, size: int, interval_ns: float, packets: int) -> ProbeStream:
    return ProbeStream(name, a.endpoint, b.endpoint, size, max(round(interval_ns), 1), packets, raw=True)


def _probe(
    kind: Callable[[str, tuple[ProbeStream, ...], int], OfStreams],
    name: str,
    streams: Sequence[ProbeStream],
    drain_s: int = 1,
) -> OfStreams:
    return kind(name, tuple(streams), drain_s * DRAIN_NS)
