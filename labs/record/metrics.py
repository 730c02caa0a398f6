"""The vocabulary of metrics: what each is called, its unit, what it means, and how tables and figures treat it.

In: nothing. Out: `METRICS`, in the order of summaries. The analysis computes each one by its name
(analysis/metrics.py); scenarios, stop rules, tables, figures, comparisons and docs/reference/metrics.md look it up
here. docs/contribute/adding/metric.md says how to add one.
"""

from __future__ import annotations

from ewan.extra import installed
from ewan.labs.record.metric import Better, Metric, MetricGroup, StepKind, Unit

__all__ = ["AMBIGUOUS", "GROUPS", "METRICS", "RANKED", "USUAL", "Better", "Metric", "MetricGroup", "StepKind", "Unit"]

_ALL = (
    Metric(
        "mean completion time",
        "ns",
        "mean over transfers of the time from scheduled start to last byte",
        MetricGroup.COMPLETION,
        usual=True,
        rank=1,
        bar="mean",
        comparable=True,
        better="less",
    ),
    Metric(
        "max completion time",
        "ns",
        "of the slowest transfer",
        MetricGroup.COMPLETION,
        bar="max",
        comparable=True,
        better="less",
    ),
    Metric(
        "min completion time",
        "ns",
        "of the fastest transfer",
        MetricGroup.COMPLETION,
        bar="min",
        comparable=True,
        better="less",
    ),
    Metric(
        "deviation of completion time",
        "ns",
        "σ = √(Σ(Tᵢ − T̄)²/N) over the transfers (HSTTS)",
        MetricGroup.COMPLETION,
        bar="std deviation",
        better="less",
    ),
    Metric("coefficient of variation", "ratio", "σ/T̄ of completion times", MetricGroup.COMPLETION, better="less"),
    Metric(
        "incomplete transfers",
        "count",
        "transfers that did not deliver all of their volume",
        MetricGroup.COMPLETION,
        normalised=False,
        better="less",
    ),
    Metric(
        "short completion time",
        "ns",
        "mean over transfers of at most 100 kB (the bins of pFabric, SIGCOMM 2013)",
        MetricGroup.SIZES,
        comparable=True,
        better="less",
    ),
    Metric(
        "medium completion time",
        "ns",
        "mean over transfers of more than 100 kB and less than 10 MB",
        MetricGroup.SIZES,
        comparable=True,
        better="less",
    ),
    Metric(
        "long completion time",
        "ns",
        "mean over transfers of at least 10 MB",
        MetricGroup.SIZES,
        comparable=True,
        better="less",
    ),
    Metric(
        "mean slowdown",
        "ratio",
        "mean over transfers of their time by that of an empty path: the least RTT between the two nodes and the "
        "payload at the rate of the slowest link (normalised completion time, pFabric, SIGCOMM 2013)",
        MetricGroup.SIZES,
        comparable=True,
        better="less",
    ),
    Metric("p99 slowdown", "ratio", "99 % of transfers had no larger one", MetricGroup.SIZES, better="less"),
    Metric(
        "transfer throughput",
        "bit/s",
        "ΣSᵢ/ΣTᵢ: sizes of the transfers that completed, by the sum of their completion times (of short-lived TCP: "
        "Kumazoe et al., PFLDnet 2006)",
        MetricGroup.SIZES,
        comparable=True,
        better="more",
    ),
    Metric(
        "mean goodput",
        "bit/s",
        "mean over load flows of payload received per time of the flow",
        MetricGroup.GOODPUT,
        rank=15,
        comparable=True,
        better="more",
    ),
    Metric(
        "aggregate goodput",
        "bit/s",
        "payload that load flows received per time in which any of them was active",
        MetricGroup.GOODPUT,
        usual=True,
        rank=5,
        comparable=True,
        better="more",
    ),
    Metric(
        "arrived goodput",
        "bit/s",
        "payload that arrived for load flows, without copies, per time in which any of them was active; the other "
        "goodputs but the steady one count what was delivered in order",
        MetricGroup.GOODPUT,
        comparable=True,
        better="more",
    ),
    Metric(
        "deficiency",
        "share",
        "of the bottleneck's rate, what the aggregate goodput of the load flows over it lacks: framing, headers and "
        "retransmissions count as lacking too (NXE, section 4.1); messages have none",
        MetricGroup.GOODPUT,
        normalised=False,
        comparable=True,
        better="less",
    ),
    Metric(
        "steady goodput",
        "bit/s",
        "payload that arrived for load flows while all were active, without copies or the warm-up; TCP of external "
        "generators does not tell it",
        MetricGroup.GOODPUT,
        rank=4,
        better="more",
    ),
    Metric(
        "fairness per flow",
        "ratio",
        "Jain's index (Σx)²/(n·Σx²) of the load flows' goodput",
        MetricGroup.GOODPUT,
        usual=True,
        rank=8,
        comparable=True,
        better="more",
        most=1.0,
    ),
    Metric(
        "fairness per source",
        "ratio",
        "Jain's index of what the load flows of each sending node received together, while any was active",
        MetricGroup.GOODPUT,
        usual=True,
        rank=9,
        comparable=True,
        better="more",
        most=1.0,
    ),
    Metric(
        "share",
        "share",
        "of all payload that arrived over the flows' bottleneck while any of them was active, what arrived for them",
        MetricGroup.DYNAMICS,
        comparable=True,
    ),
    Metric(
        "convergence time",
        "ns",
        "δ-fair (RFC 5166, section 2.3): from the start of the last flow to the end of the first second in which each "
        "flow had within 10 % of an equal share; a run in which that never was does not have it",
        MetricGroup.DYNAMICS,
        better="less",
    ),
    Metric(
        "smoothness",
        "ratio",
        "coefficient of variation of what arrives for a flow in each second, without the warm-up; mean over flows (RFC "
        "5166, section 2.2.2): 0 is smooth",
        MetricGroup.DYNAMICS,
        better="less",
    ),
    Metric(
        "warm-up",
        "ns",
        "what steady goodput and smoothness leave out, from the start of the last flow: by MSER-5 (White 1997) over "
        "all arrivals, a quarter where that finds no end",
        MetricGroup.DYNAMICS,
        normalised=False,
    ),
    Metric(
        "utilisation",
        "share",
        "of the load's bottleneck: bytes sent, framing counted, of what its rate carries while load is active",
        MetricGroup.NETWORK,
        usual=True,
        rank=11,
        normalised=False,
        comparable=True,
        emulated=True,
        better="more",
    ),
    Metric(
        "mean queueing delay",
        "ns",
        "at the bottleneck: mean wait of a packet in the queue before its first bit is sent (W_q)",
        MetricGroup.QUEUE,
        usual=True,
        rank=10,
        emulated=True,
        better="less",
    ),
    Metric(
        "queueing delay p50",
        "ns",
        "at the bottleneck: for half of the time in which load is active, a packet would have waited no longer; by the "
        "samples of the table links",
        MetricGroup.QUEUE,
        emulated=True,
        better="less",
    ),
    Metric(
        "queueing delay p95",
        "ns",
        "at the bottleneck: for 95 % of the time in which load is active, a packet would have waited no longer; by the "
        "samples of the table links",
        MetricGroup.QUEUE,
        emulated=True,
        better="less",
    ),
    Metric(
        "queueing delay p99",
        "ns",
        "at the bottleneck: for 99 % of the time in which load is active, a packet would have waited no longer; by the "
        "samples of the table links",
        MetricGroup.QUEUE,
        emulated=True,
        better="less",
    ),
    Metric(
        "mean rtt",
        "ns",
        "mean of the senders' samples of their smoothed RTT (RFC 6298)",
        MetricGroup.RTT,
        better="less",
    ),
    Metric(
        "rtt p50",
        "ns",
        "half of the senders' samples of their smoothed RTT were no more",
        MetricGroup.RTT,
        better="less",
    ),
    Metric(
        "rtt p95",
        "ns",
        "95 % of the senders' samples of their smoothed RTT were no more",
        MetricGroup.RTT,
        better="less",
    ),
    Metric(
        "rtt p99",
        "ns",
        "99 % of the senders' samples of their smoothed RTT were no more",
        MetricGroup.RTT,
        better="less",
    ),
    Metric(
        "device difference",
        "share",
        "of the bytes that our cards behind devices outside counted, what the devices' readouts tell more or less, "
        "summed over directions; of the run's time between the first and the last look at the cards",
        MetricGroup.NETWORK,
        normalised=False,
        selectable=False,
        better="less",
    ),
    Metric(
        "queue loss",
        "share",
        "of the packets that came to queues on the load's ways, those that were dropped there (full, or by their "
        "discipline) or cut with a link that went down",
        MetricGroup.NETWORK,
        usual=True,
        rank=12,
        emulated=True,
        better="less",
    ),
    Metric(
        "link loss",
        "share",
        "of the packets that came to links on the load's ways, those that were lost on purpose (loss in the "
        "description); copies that a link makes (duplicate) are not among them",
        MetricGroup.NETWORK,
        usual=True,
        rank=13,
        better="less",
    ),
    Metric(
        "total loss",
        "share",
        "how likely a packet was to be lost to queues or links on the load's ways",
        MetricGroup.NETWORK,
        usual=True,
        rank=14,
        emulated=True,
        better="less",
    ),
    Metric(
        "retransmissions",
        "share",
        "retransmitted segments of all that load flows sent",
        MetricGroup.NETWORK,
        usual=True,
        better="less",
    ),
    Metric(
        "marks",
        "share",
        "of the packets that left the bottleneck's queue, those that it marked (ECN)",
        MetricGroup.QUEUE,
        emulated=True,
    ),
    Metric("timeouts", "count", "of the load flows' retransmission timers", MetricGroup.QUEUE, better="less"),
    Metric(
        "mean response time",
        "ns",
        "from a request's first byte sent to its response's last received; objects over HTTP/3 count too",
        MetricGroup.EXCHANGES,
        step="requests",
        usual=True,
        rank=2,
        bar="mean response",
        comparable=True,
        better="less",
    ),
    Metric(
        "p95 response time",
        "ns",
        "95 % of responses took no longer",
        MetricGroup.EXCHANGES,
        step="requests",
        bar="p95 response",
        better="less",
    ),
    Metric(
        "mean iteration time",
        "ns",
        "mean over ranks and iterations of computing and exchanging messages",
        MetricGroup.EXCHANGES,
        step="messages",
        usual=True,
        rank=3,
        bar="iteration",
        comparable=True,
        better="less",
    ),
    Metric(
        "start lateness p99",
        "ns",
        "99 % of flows made their first system call no later than this after schedule",
        MetricGroup.NETWORK,
        normalised=False,
        better="less",
    ),
    Metric(
        "udp loss",
        "share",
        "packets sent by UDP flows that did not arrive",
        MetricGroup.UDP,
        step="udp",
        usual=True,
        rank=6,
        better="less",
    ),
    Metric(
        "udp jitter",
        "ns",
        "RFC 3550, section 6.4.1; mean over UDP flows",
        MetricGroup.UDP,
        step="udp",
        usual=True,
        rank=7,
        better="less",
    ),
    Metric(
        "udp delay p50",
        "ns",
        "one-way delay that half of the packets did not exceed; mean over UDP flows",
        MetricGroup.UDP,
        step="udp",
        better="less",
    ),
    Metric(
        "udp delay p99",
        "ns",
        "one-way delay that 99 % of packets did not exceed; mean over UDP flows",
        MetricGroup.UDP,
        step="udp",
        better="less",
    ),
    Metric(
        "voice mos",
        "ratio",
        "mean opinion score, 1 to 4.5, of UDP flows as calls in G.711, by the E-model (ITU-T G.107 and G.113): "
        "listeners wait for 20 ms of speech in a packet and the delay that 99 % of packets do not exceed, and later "
        "ones are lost; mean over UDP flows",
        MetricGroup.UDP,
        step="udp",
        better="more",
        most=4.5,
    ),
    *(
        Metric(
            f"frame delay {rank}",
            "ns",
            f"from a frame's capture to its last packet: {share} of the frames of media that came whole took no longer",
            MetricGroup.MEDIA,
            step="media",
            usual=rank == "p95",
            comparable=True,
            better="less",
        )
        for rank, share in (("p50", "half"), ("p95", "95 %"), ("p99", "99 %"))
    ),
    Metric(
        "frames lost",
        "share",
        "frames of media that were captured and did not come whole",
        MetricGroup.MEDIA,
        step="media",
        usual=True,
        better="less",
    ),
    Metric(
        "frames not shown",
        "share",
        "frames of media that were lost, or need a lost one: all from a loss to the next key frame",
        MetricGroup.MEDIA,
        step="media",
        better="less",
    ),
    Metric(
        "freezes",
        "count",
        "of all media flows: a frame is shown for at least three times the mean of the 30 before it, and 150 ms more "
        "than that (freezeCount of W3C's WebRTC statistics)",
        MetricGroup.MEDIA,
        step="media",
        usual=True,
        better="less",
    ),
    Metric(
        "freeze share",
        "share",
        "of the time of media flows, what such frames were shown for (totalFreezesDuration)",
        MetricGroup.MEDIA,
        step="media",
        usual=True,
        better="less",
    ),
    Metric(
        "media rate",
        "bit/s",
        "what the encoder made, without headers; mean over media flows",
        MetricGroup.MEDIA,
        step="media",
        usual=True,
        comparable=True,
        better="more",
    ),
    Metric(
        "picture mos",
        "ratio",
        "video quality, 1 to 5, by the opinion model for videophones (ITU-T G.1070, clause 11.2, H.264 in VGA): of the "
        "rate and the number of frames shown, and the packets lost; it knows no delay and no freezes; mean over media "
        "flows",
        MetricGroup.MEDIA,
        step="media",
        better="more",
        most=5.0,
    ),
    Metric(
        "ping rtt mean",
        "ns",
        "mean RTT of echo requests that were answered; of a quiet ping the mean that it gives",
        MetricGroup.PING,
        step="run",
        commands=True,
        comparable=True,
        better="less",
    ),
    *(
        Metric(
            f"ping rtt {rank}",
            "ns",
            f"RTT that {share} of the echo requests that were answered did not exceed",
            MetricGroup.PING,
            step="run",
            usual=rank != "p99",
            commands=True,
            comparable=True,
            better="less",
        )
        for rank, share in (("p50", "half"), ("p95", "95 %"), ("p99", "99 %"))
    ),
    Metric(
        "ping rtt max",
        "ns",
        "longest RTT of echo requests that were answered",
        MetricGroup.PING,
        step="run",
        commands=True,
        comparable=True,
        better="less",
    ),
    Metric(
        "longest ping outage",
        "ns",
        "the longest time from an echo request without an answer to the next one with an answer; 0: all have one",
        MetricGroup.PING,
        step="run",
        commands=True,
        better="less",
    ),
    Metric(
        "ping loss",
        "share",
        "echo requests without an answer",
        MetricGroup.PING,
        step="run",
        usual=True,
        commands=True,
        better="less",
    ),
    *(
        Metric(
            f"answers within {bound}ms",
            "share",
            f"echo requests that were answered within {bound} ms, of all sent{source}",
            MetricGroup.PING,
            step="run",
            commands=True,
            better="more",
        )
        for bound, source in (
            (50, ""),
            (100, ": what players of first-person games bear (Claypool and Claypool, CACM 49(11), 2006)"),
        )
    ),
    Metric(
        "packet queueing delay",
        "ns",
        "at the bottleneck: mean time that the flows' own packets waited in the queue",
        MetricGroup.COUNTED,
        emulated=True,
        counted=True,
        better="less",
    ),
    *(
        Metric(
            f"packet queueing delay {rank}",
            "ns",
            f"at the bottleneck: time in the queue that {share} of the flows' own packets did not exceed; counted in "
            "classes of 1/16",
            MetricGroup.COUNTED,
            emulated=True,
            counted=True,
            better="less",
        )
        for rank, share in (("p50", "half"), ("p95", "95 %"), ("p99", "99 %"))
    ),
    Metric(
        "packet loss",
        "share",
        "of the flows' own packets that came to the bottleneck, copies included, those that it lost or dropped",
        MetricGroup.COUNTED,
        emulated=True,
        counted=True,
        better="less",
    ),
    Metric(
        "packet marks",
        "share",
        "of the flows' own packets that left the bottleneck, those that it marked (ECN)",
        MetricGroup.COUNTED,
        emulated=True,
        counted=True,
    ),
    Metric(
        "packet throughput",
        "bit/s",
        "what of the flows' own packets left the bottleneck, headers, framing and retransmissions included, per time "
        "in which any of them was active",
        MetricGroup.COUNTED,
        emulated=True,
        counted=True,
        better="more",
    ),
    Metric(
        "mean one-way delay",
        "ns",
        "from the source's interface to the sink's, mean over packets with payload that were captured at both; one "
        "clock stamped both",
        MetricGroup.PACKETS,
        captured=True,
        comparable=True,
        better="less",
    ),
    *(
        Metric(
            f"one-way delay {rank}",
            "ns",
            f"one-way delay that {share} of the packets with payload did not exceed, captured at source and sink",
            MetricGroup.PACKETS,
            captured=True,
            comparable=rank == "p50",
            better="less",
        )
        for rank, share in (("p50", "half"), ("p95", "95 %"), ("p99", "99 %"))
    ),
    Metric(
        "matched packets",
        "share",
        "of the packets with payload captured at the sink, those that are known again as one captured at the source: "
        "one-way delays and reordering are of these; others left before the capture, or nothing tells them apart",
        MetricGroup.PACKETS,
        captured=True,
        better="more",
    ),
    Metric(
        "reordering",
        "share",
        "of the packets captured at source and sink, those that came after one of their connection that was sent "
        "later (RFC 4737, section 3.3, by the order in which they were sent)",
        MetricGroup.PACKETS,
        captured=True,
        better="less",
    ),
    Metric(
        "wire retransmissions",
        "share",
        "of TCP's data segments that left the source, those of which all bytes had left it before",
        MetricGroup.PACKETS,
        captured=True,
        better="less",
    ),
    Metric(
        "packet gap p99",
        "ns",
        "99 % of the times from a packet with payload to the next of its connection at the sink were no longer",
        MetricGroup.PACKETS,
        captured=True,
        better="less",
    ),
    Metric(
        "largest burst",
        "ns",
        "depth of the least token bucket at the bottleneck's rate to which each connection's packets conform as they "
        "leave the source (RFC 2697), as the time that this rate takes for it; of the connection with the largest",
        MetricGroup.PACKETS,
        captured=True,
        better="less",
    ),
    Metric(
        "reverse goodput",
        "bit/s",
        "aggregate of the flows of role reverse, while any of them was active",
        MetricGroup.DYNAMICS,
        selectable=False,
        better="more",
    ),
    Metric(
        "background goodput",
        "bit/s",
        "aggregate of the flows of role background, while any of them was active",
        MetricGroup.DYNAMICS,
        selectable=False,
        better="more",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}


def metric_named(name: str) -> Metric | None:
    """The metric of a name, the product's or an extra's; None where there is none of this name."""
    if name in METRICS:
        return METRICS[name]
    load = installed().metrics.get(name)
    if load is None:
        return None
    metric: Metric = load()[0]
    return metric


USUAL = tuple(metric.name for metric in _ALL if metric.usual)
"""The metrics of the terminal's table, if the scenario names none."""
RANKED = tuple(metric.name for metric in sorted(_ALL, key=lambda each: each.rank or 0) if metric.rank is not None)
"""The metrics that figures and `ewan exp list` choose from where the scenario names none, the most telling first."""
GROUPS: dict[MetricGroup, tuple[str, ...]] = {
    group: tuple(metric.name for metric in _ALL if metric.group is group) for group in MetricGroup
}

AMBIGUOUS = {
    "loss": "queue loss, link loss or total loss",
    "fairness": "fairness per flow or fairness per source",
}
"""Words that could mean several metrics, with what to write instead."""
