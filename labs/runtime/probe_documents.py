"""Probes as `ewan-node probe` is asked for them, and what it answers.

In: streams of packets and TCP transfers, with their ends. Out: requests as emulator/traffic/src/probe/request.rs reads
them, and answers as emulator/traffic/src/probe/results.rs writes them (tests/golden/probe.request.json and
probe.answer.json have one of each kind).
"""

from __future__ import annotations

from ewan.labs.base.codec import Document, Struct, Variant, field
from ewan.labs.record.schedule import Clock
from ewan.labs.record.traffic import Endpoint


class ProbeStream(Struct):
    """IP packets of equal size at equal intervals. The first `skip_ns` are no part of what is steady. `raw`: the answer
    has all delays, and the times between arrivals. `shares_with`: the stream with which it fills a link together."""

    name: str
    from_: Endpoint = field(name="from")
    to: Endpoint
    packet_bytes: int
    interval_ns: int
    packets: int
    start_ns: int | None = None
    batch_packets: int | None = None
    skip_ns: int | None = None
    raw: bool | None = None
    shares_with: str | None = None

    @property
    def lasts_ns(self) -> int:
        """From its first packet to the end of its last one's turn."""
        return self.interval_ns * self.packets


class StreamsProbe(Variant):
    """Streams side by side; after the last packet was sent those on the way are waited for, for `drain_ns`.
    `series_ns`: width of the bins in which arrivals are counted."""

    name: str
    streams: tuple[ProbeStream, ...]
    drain_ns: int
    series_ns: int | None = None


class DelayProbe(StreamsProbe, tag="delay"):
    """A probe of one-way delays."""


class LossProbe(StreamsProbe, tag="loss"):
    """A probe of losses."""


class RttProbe(StreamsProbe, tag="rtt"):
    """A probe of round trips: each packet is answered."""


class SaturateProbe(StreamsProbe, tag="saturate"):
    """A probe that offers more than the links carry."""


class TcpProbe(Variant, tag="tcp"):
    """A transfer, of which the last `steady_ns` are judged."""

    name: str
    from_: Endpoint = field(name="from")
    to: Endpoint
    congestion: str
    duration_ns: int
    steady_ns: int
    connect_timeout_ns: int
    sample_ns: int | None = None


OfStreams = DelayProbe | LossProbe | RttProbe | SaturateProbe
Probe = OfStreams | TcpProbe


class ProbeRequest(Struct):
    """Probes that are sent one after the other. `cpus`: where their threads run."""

    cpus: tuple[int, ...]
    probes: tuple[Probe, ...]
    clock: Clock = "live"


class DelayPercentiles(Struct):
    """Percentiles of one-way delays, or of round-trip times."""

    min_ns: int
    p1_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    mean_ns: float
    deviation_ns: float


class Steady(Struct):
    """The packets that arrived in the steady state: emulator/traffic/src/probe/stats.rs."""

    packets: int
    l3_bytes: int
    window_ns: int
    fitted_window_ns: float
    longest_gap_ns: int
    services: int
    busy_packets: int
    busy_window_ns: int
    delay: DelayPercentiles


class StreamResult(Struct):
    """The result of a stream. `sent_packets`: those that the own interface took; `unsent_packets`: this host was too
    slow for them. `socket_drops_packets`: the probe's own receive buffer had no room for them; they are among those
    that were lost. `clocks_ns`: delays are read off two machines' clocks, whose difference is known to ± so much.
    `steady`: with what shares its link. `loss_runs`: (packets in a row that were lost, how often). `quantiles_ns`:
    (share, delay), which a certificate has in place of all delays."""

    name: str
    packet_bytes: int
    sent_packets: int
    refused_packets: int
    unsent_packets: int
    refused_why: str | None
    sending_ns: int
    longest_sender_gap_ns: int
    received_packets: int
    lost_packets: int
    duplicated_packets: int
    reordered_packets: int
    socket_drops_packets: int
    delay: DelayPercentiles | None
    jitter_ns: float
    steady: Steady | None
    loss_runs: tuple[tuple[int, int], ...]
    clocks_ns: int | None = None
    arrived_series_packets: tuple[int, ...] = ()
    delays_ns: tuple[int, ...] | None = None
    spacings_ns: tuple[int, ...] | None = None
    quantiles_ns: tuple[tuple[float, float], ...] = ()


class StreamsResult(Variant):
    """`clock_step_ns`: by so much the host's clock was stepped meanwhile."""

    name: str
    elapsed_ns: int
    clock_step_ns: int
    streams: tuple[StreamResult, ...]


class DelayResult(StreamsResult, tag="delay"):
    """The result of a `DelayProbe`."""


class LossResult(StreamsResult, tag="loss"):
    """The result of a `LossProbe`."""


class RttResult(StreamsResult, tag="rtt"):
    """The result of a `RttProbe`."""


class SaturateResult(StreamsResult, tag="saturate"):
    """The result of a `SaturateProbe`."""


class TcpSample(Struct):
    """A look at TCP_INFO, so long after the connection was there."""

    time_ns: int
    received_bytes: int
    delivered_segments: int
    cwnd_segments: int
    ssthresh_segments: int
    srtt_ns: int
    retransmitted_segments: int
    lost_segments: int
    idle_ns: int


class TcpResult(Variant, tag="tcp"):
    """`goodput_bps`: of the payload that came to the receiver in the last `steady_ns`. `idle_ratio`: the CPUs had
    nothing to do for this share of them."""

    name: str
    elapsed_ns: int
    congestion: str
    connect_ns: int
    goodput_bps: float
    steady_ns: int
    received_bytes: int
    segment_bytes: int
    min_rtt_ns: int
    srtt_ns: int
    retransmitted_segments: int
    idle_ratio: float
    series: tuple[TcpSample, ...]


class FailedResult(Variant, tag="failed"):
    """A probe that could not be sent; the others are."""

    name: str
    elapsed_ns: int
    error: str


ProbeResult = DelayResult | LossResult | RttResult | SaturateResult | TcpResult | FailedResult


class ProbeAnswer(Document, tag="ewan-probe/1"):
    """A result for each probe, in their order."""

    results: tuple[ProbeResult, ...]
