"""The vocabulary of metrics: what each is called, its unit, what it means, and how tables and figures treat it.

In: nothing. Out: `METRICS`, in the order of summaries. The analysis computes each one by its name
(analysis/metrics.py); scenarios, stop rules, tables, figures, comparisons and docs/metrics.md look it up here.
docs/adding/metric.md says how to add one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Unit = Literal["ns", "bit/s", "ratio", "share", "count"]
"""What a value is stored in. A share is a ratio that is shown as a percentage."""

StepKind = Literal["requests", "messages", "udp"]


class Group(StrEnum):
    """The tables of the report, by their titles, in their order."""

    COMPLETION = "Completion times of transfers"
    EXCHANGES = "Responses and iterations"
    GOODPUT = "Goodput and fairness"
    UDP = "UDP"
    NETWORK = "Bottleneck, losses and starts"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a run.

    `name` is its key in scenarios and summaries. `meaning` is one sentence, with its source where there is one.
    """

    name: str
    unit: Unit
    meaning: str
    group: Group
    step: StepKind | None = None
    """The kind of step without which no run has it; None: any run may have it."""
    usual: bool = False
    """The terminal's table shows it where the scenario names no metrics."""
    rank: int | None = None
    """Its place among the metrics that figures and `ewan runs` choose from where the scenario names none; None: they
    do not choose it."""
    bar: str = ""
    """Its name below a bar of ratios, beside others of its group; empty: it is drawn where no metric of a group with
    such names is there."""
    normalised: bool = True
    """Its ratio to that of a reference says something."""
    comparable: bool = False
    """Two single runs may be compared by the relative difference of its values: it has a scale of its own."""
    emulated: bool = False
    """It is of the load's bottleneck, and known only where that is an emulated link."""
    selectable: bool = True
    """It can be of other flows than the load's: `NAME of STEP`."""


_ALL = (
    Metric(
        "mean completion time",
        "ns",
        "mean over transfers of the time from scheduled start to last byte",
        Group.COMPLETION,
        usual=True,
        rank=1,
        bar="mean",
        comparable=True,
    ),
    Metric("max completion time", "ns", "of the slowest transfer", Group.COMPLETION, bar="max", comparable=True),
    Metric("min completion time", "ns", "of the fastest transfer", Group.COMPLETION, bar="min", comparable=True),
    Metric(
        "deviation of completion time",
        "ns",
        "σ = √(Σ(Tᵢ − T̄)²/N) over the transfers (HSTTS)",
        Group.COMPLETION,
        bar="std deviation",
    ),
    Metric("coefficient of variation", "ratio", "σ/T̄ of completion times", Group.COMPLETION),
    Metric(
        "incomplete transfers",
        "count",
        "transfers that did not deliver all of their volume",
        Group.COMPLETION,
        normalised=False,
    ),
    Metric(
        "mean goodput",
        "bit/s",
        "mean over load flows of payload received per time of the flow",
        Group.GOODPUT,
        rank=15,
        comparable=True,
    ),
    Metric(
        "aggregate goodput",
        "bit/s",
        "payload that load flows received per time in which any of them was active",
        Group.GOODPUT,
        usual=True,
        rank=5,
        comparable=True,
    ),
    Metric(
        "steady goodput",
        "bit/s",
        "payload that arrived for load flows while all were active, without copies or the first quarter of that "
        "time; TCP of external generators does not tell it",
        Group.GOODPUT,
        rank=4,
    ),
    Metric(
        "fairness per flow",
        "ratio",
        "Jain's index (Σx)²/(n·Σx²) of the load flows' goodput",
        Group.GOODPUT,
        usual=True,
        rank=8,
        comparable=True,
    ),
    Metric(
        "fairness per source",
        "ratio",
        "Jain's index of what the load flows of each sending node received together, while any was active",
        Group.GOODPUT,
        usual=True,
        rank=9,
        comparable=True,
    ),
    Metric(
        "utilisation",
        "share",
        "of the load's bottleneck: bytes sent, framing counted, of what its rate carries while load is active",
        Group.NETWORK,
        usual=True,
        rank=11,
        normalised=False,
        comparable=True,
        emulated=True,
    ),
    Metric(
        "mean queueing delay",
        "ns",
        "at the bottleneck: mean wait of a packet in the queue before its first bit is sent (W_q)",
        Group.NETWORK,
        usual=True,
        rank=10,
        emulated=True,
    ),
    Metric(
        "queue loss",
        "share",
        "packets dropped by queues (full, or their discipline) on the load's ways",
        Group.NETWORK,
        usual=True,
        rank=12,
        emulated=True,
    ),
    Metric(
        "link loss",
        "share",
        "packets lost on purpose by links (loss in the description) on the load's ways",
        Group.NETWORK,
        usual=True,
        rank=13,
    ),
    Metric(
        "total loss",
        "share",
        "packets lost to queues or links on the load's ways",
        Group.NETWORK,
        usual=True,
        rank=14,
        emulated=True,
    ),
    Metric("retransmissions", "share", "retransmitted segments of all that load flows sent", Group.NETWORK, usual=True),
    Metric(
        "mean response time",
        "ns",
        "from a request's first byte sent to its response's last received",
        Group.EXCHANGES,
        step="requests",
        usual=True,
        rank=2,
        bar="mean response",
        comparable=True,
    ),
    Metric(
        "p95 response time",
        "ns",
        "95 % of responses took no longer",
        Group.EXCHANGES,
        step="requests",
        bar="p95 response",
    ),
    Metric(
        "mean iteration time",
        "ns",
        "mean over ranks and iterations of computing and exchanging messages",
        Group.EXCHANGES,
        step="messages",
        usual=True,
        rank=3,
        bar="iteration",
        comparable=True,
    ),
    Metric(
        "start lateness p99",
        "ns",
        "99 % of flows made their first system call no later than this after schedule",
        Group.NETWORK,
        normalised=False,
    ),
    Metric(
        "udp loss",
        "share",
        "packets sent by UDP flows that did not arrive",
        Group.UDP,
        step="udp",
        usual=True,
        rank=6,
    ),
    Metric(
        "udp jitter", "ns", "RFC 3550, section 6.4.1; mean over UDP flows", Group.UDP, step="udp", usual=True, rank=7
    ),
    Metric(
        "udp delay p50",
        "ns",
        "one-way delay that half of the packets did not exceed; mean over UDP flows",
        Group.UDP,
        step="udp",
    ),
    Metric(
        "udp delay p99",
        "ns",
        "one-way delay that 99 % of packets did not exceed; mean over UDP flows",
        Group.UDP,
        step="udp",
    ),
    Metric(
        "reverse goodput",
        "bit/s",
        "aggregate of the flows of role reverse, while any of them was active",
        Group.GOODPUT,
        selectable=False,
    ),
    Metric(
        "background goodput",
        "bit/s",
        "aggregate of the flows of role background, while any of them was active",
        Group.GOODPUT,
        selectable=False,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
USUAL = tuple(metric.name for metric in _ALL if metric.usual)
"""Of the terminal's table, where the scenario names no metrics."""
RANKED = tuple(metric.name for metric in sorted(_ALL, key=lambda each: each.rank or 0) if metric.rank is not None)
"""What figures and `ewan runs` choose from where the scenario names none, the most telling first."""
GROUPS: dict[Group, tuple[str, ...]] = {
    group: tuple(metric.name for metric in _ALL if metric.group is group) for group in Group
}

AMBIGUOUS = {
    "loss": "queue loss, link loss or total loss",
    "fairness": "fairness per flow or fairness per source",
}
"""Words that could mean several metrics, with what to write instead."""
