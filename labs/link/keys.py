"""What a description says of one direction of a link: its keys.

Where a setting is None here, nobody wrote it; the compiler knows the default.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ewan.labs.base.model import Model
from ewan.labs.base.values import BufferText, DurationText, FractionText, RateText
from ewan.labs.link.bucket import BurstText, PeakText, PoliceKeys
from ewan.labs.link.delay import CorrelationText, DelayText
from ewan.labs.link.displace import DisplaceKeys
from ewan.labs.link.loss import LossKeys
from ewan.labs.link.middlebox import BlackholeText
from ewan.labs.link.queue import QueueKeys
from ewan.labs.link.radio import AggregateKeys, HarqKeys, SlotText
from ewan.labs.link.trace import TraceKeys


class DirectionKeys(Model):
    """The settings of one direction of a link; None: not said here."""

    rate: RateText | None = Field(
        None, description="of what `framing` counts; wan 1Gbit/s, access 10Gbit/s (or the fastest wan) if absent"
    )
    buffer: BufferText | None = Field(
        None, description="what may wait, without the delay line; wan 1BDP of the longest RTT, access 1000pkt if absent"
    )
    queue: QueueKeys | None = Field(None, description="queue discipline; drop-tail if absent", examples=["codel"])
    framing: Literal["wire", "ethernet", "header", "ip"] | None = Field(
        None,
        description="what a packet's length counts beyond IP: wire 38 B (header 14, FCS 4, preamble and gap 20), "
        "ethernet 18 B, header 14 B (what tc counts), ip nothing; wire if absent",
    )
    loss: LossKeys | None = Field(None, description="loss model; none if absent", examples=["0.1%"])
    corrupt: FractionText | None = Field(None, description="packets with one flipped bit; none if absent")
    duplicate: FractionText | None = Field(None, description="packets sent twice; none if absent")
    delay: DelayText | None = Field(None, description="one way; from `rtt` if absent, 0 on access links")
    jitter: DurationText | None = Field(None, description="spread of the delay around `delay`; none if absent")
    distribution: Literal["uniform", "normal", "pareto"] | None = Field(
        None,
        description="uniform: within ± jitter; normal: jitter is the standard deviation; pareto: from "
        "delay - jitter on, a tail of shape 3 with that standard deviation; normal if absent",
        examples=["uniform"],
    )
    correlation: CorrelationText | None = Field(
        None,
        description="of a normal jitter: how much of a packet's deviation the next one keeps; n packets later it is "
        "correlation^n. Mean and standard deviation stay what `delay` and `jitter` say; none if absent",
    )
    reorder: bool | None = Field(
        None,
        description="may jitter let packets overtake; false if absent: a packet then leaves no earlier than those "
        "before it, which makes the mean delay longer. Packets that come 1, 0.3, 0.1 or 0.01 of jitter apart are later "
        "by 0.04, 0.28, 0.52 or 0.83 jitter in the mean (uniform), by 0.23, 0.72, 1.21 or 2.13 (normal)",
    )
    displace: DisplaceKeys | None = Field(
        None,
        description="some packets leave behind so many later ones, whatever the delay is; none if absent",
        examples=["{share: 1%, packets: 3}", "none"],
    )
    ecn: Literal["bleach", "keep"] | None = Field(
        None,
        description="bleach: a middlebox before the queue clears both bits of ECN in every packet; keep if absent",
        examples=["bleach"],
    )
    blackhole: BlackholeText | None = Field(
        None,
        description="IP packets longer than this vanish before the queue, without a word to anyone; none if absent",
    )
    police: PoliceKeys | None = Field(
        None,
        description="a policer before the queue drops what exceeds a token bucket; none if absent",
        examples=["{rate: 10Mbit/s, burst: 32kB}", "none"],
    )
    burst: BurstText | None = Field(
        None,
        description="the rate is a token bucket's, of this depth: so much passes at once after a pause; none if absent",
    )
    peak: PeakText | None = Field(
        None, description="the rate at which a burst passes; without limit if absent, so that it takes no time"
    )
    aggregate: AggregateKeys | None = Field(
        None,
        description="packets that wait are sent together and arrive together, as on Wi-Fi; none if absent",
        examples=["{packets: 64, time: 4ms, gap: 150us}", "none"],
    )
    duplex: Literal["full", "half"] | None = Field(
        None,
        description="half: both directions share one medium, so that one waits while the other one sends, and they "
        "take turns where both wait; full if absent",
        examples=["half"],
    )
    slot: SlotText | None = Field(
        None,
        description="packets leave at the ends of slots of this length (a TTI of LTE or NR), each at the end of the "
        "one in which its last bit was sent; none if absent",
    )
    harq: HarqKeys | None = Field(
        None,
        description="transmissions that fail are repeated a round later; none if absent",
        examples=["{errors: 10%, round: 8ms}", "none"],
    )
    acks: Literal["filter", "keep"] | None = Field(
        None,
        description="filter: a pure ACK of TCP takes the place of an earlier one of its flow that still waits in the "
        "queue (RFC 3449); keep if absent",
        examples=["filter"],
    )
    trace: TraceKeys | None = Field(
        None,
        description="rate, delay, loss or buffer over time, from a file; none if absent",
        examples=["{file: lte.csv}"],
    )
