"""The table of a link's settings: what a description says of one direction, with all that the rest knows of each key,
and what a plan says of it.

Where a setting is None in `DirectionKeys`, it is not written; the compiler knows the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from ewan.labs.base.codec import Struct
from ewan.labs.base.model import Model
from ewan.labs.base.units import NS_PER_SECOND, NS_PER_US, Duration
from ewan.labs.base.values import BufferText, DurationText, FractionText, RateText
from ewan.labs.link import delay as delays
from ewan.labs.link import loss as losses
from ewan.labs.link import queue as queues
from ewan.labs.link import trace as traces
from ewan.labs.link.bucket import BurstText, PeakText, PoliceKeys, police_words
from ewan.labs.link.delay import CorrelationText, Delay, DelayText
from ewan.labs.link.displace import DisplaceKeys, displace_words
from ewan.labs.link.framing import Framing, framing_words
from ewan.labs.link.loss import Loss, LossKeys
from ewan.labs.link.middlebox import BlackholeText
from ewan.labs.link.queue import Queue, QueueKeys
from ewan.labs.link.radio import (
    Aggregate,
    AggregateKeys,
    Harq,
    HarqKeys,
    aggregate_words,
    compile_harq,
    harq_words,
)
from ewan.labs.link.row import BIT_RATE, BYTES, NANOSECONDS, PARTS_PER_BILLION, KeyRow, number, number_within
from ewan.labs.link.trace import Trace, TraceKeys

MIDDLEBOX = "netem has no such middlebox"
BUCKET = "only our own model has such a bucket"
RADIO = "only our own model has such a radio link"


column = partial(KeyRow, device=True, column=True)
SPREAD = column(plan=("delay",), line=True, trace="delay")
"""The row of the keys that `delay` covers with its own."""


def always(value: object) -> bool:
    """Always True: the test for keys whose every value a network card provides."""
    return True


class DirectionKeys(Model, defer_build=True):
    """The settings of one direction of a link; None: not written here."""

    rate: Annotated[
        RateText | None,
        column(plan=("rate_bps",), unit=BIT_RATE, words=BIT_RATE.words, card=always, trace="rate"),
    ] = Field(None, description="of what `framing` counts; wan 1Gbit/s, access 10Gbit/s (or the fastest wan) if absent")
    buffer: Annotated[
        BufferText | None,
        column(plan=("queue",), words=queues.limit_words, card=always, netem=queues.obstacle, trace="buffer"),
    ] = Field(
        None, description="what may wait, without the delay line; wan 1BDP of the longest RTT, access 1000pkt if absent"
    )
    queue: Annotated[
        QueueKeys | None,
        column(
            plan=("queue",),
            words=lambda queue: queue.discipline.words,
            card=queues.is_drop_tail,
            netem=queues.discipline_obstacle,
        ),
    ] = Field(None, description="queue discipline; drop-tail if absent", examples=["codel"])
    framing: Annotated[
        Literal["wire", "ethernet", "header", "ip"] | None,
        column(plan=("framing",), words=framing_words, card=always, live=False),
    ] = Field(
        None,
        description="what a packet's length counts beyond IP: wire 38 B (header 14, FCS 4, preamble and gap 20), "
        "ethernet 18 B, header 14 B (what tc counts), ip nothing; wire if absent",
    )
    loss: Annotated[
        LossKeys | None,
        column(plan=("loss",), words=lambda loss: losses.words(loss) or "0%", netem=losses.obstacle, trace="loss"),
    ] = Field(None, description="loss model; none if absent", examples=["0.1%"])
    corrupt: Annotated[FractionText | None, number(PARTS_PER_BILLION, "corrupt_ppb", device=True)] = Field(
        None, description="packets with one flipped bit; none if absent"
    )
    duplicate: Annotated[FractionText | None, number(PARTS_PER_BILLION, "duplicate_ppb", device=True)] = Field(
        None, description="packets sent twice; none if absent"
    )
    delay: Annotated[
        DelayText | None,
        column(
            plan=("delay",), words=delays.words, card=delays.is_nothing, netem=delays.obstacle, line=True, trace="delay"
        ),
    ] = Field(None, description="one way; from `rtt` if absent, 0 on access links")
    jitter: Annotated[DurationText | None, SPREAD] = Field(
        None, description="spread of the delay around `delay`; none if absent"
    )
    distribution: Annotated[Literal["uniform", "normal", "pareto"] | None, SPREAD] = Field(
        None,
        description="uniform: within ± jitter; normal: jitter is the standard deviation; pareto: from "
        "delay - jitter on, a tail of shape 3 with that standard deviation; normal if absent",
        examples=["uniform"],
    )
    correlation: Annotated[CorrelationText | None, SPREAD] = Field(
        None,
        description="of a normal jitter: how much of a packet's deviation the next one keeps; n packets later it is "
        "correlation^n. Mean and standard deviation stay what `delay` and `jitter` say; none if absent",
    )
    reorder: Annotated[
        bool | None,
        KeyRow(
            plan=("reorder",),
            becomes=bool,
            words=str,
            card=lambda reorder: not reorder,
            device=True,
            line=True,
            table=lambda _: "reorder",
        ),
    ] = Field(
        None,
        description="may jitter let packets overtake; false if absent: a packet then leaves no earlier than those "
        "before it, which makes the mean delay longer. Packets that come 1, 0.3, 0.1 or 0.01 of jitter apart are later "
        "by 0.04, 0.28, 0.52 or 0.83 jitter in the mean (uniform), by 0.23, 0.72, 1.21 or 2.13 (normal)",
    )
    displace: Annotated[
        DisplaceKeys | None,
        KeyRow(
            plan=("displace_ppb", "displace_packets", "displace_within_ns"),
            words=displace_words,
            nothing="none",
            netem="netem reorders another way",
            line=True,
        ),
    ] = Field(
        None,
        description="some packets leave behind so many later ones, whatever the delay is; none if absent",
        examples=["{share: 1%, packets: 3}", "none"],
    )
    ecn: Annotated[
        Literal["bleach", "keep"] | None,
        KeyRow(
            plan=("ecn_bleach",),
            becomes=lambda written: written == "bleach",
            words=lambda bleach: "bleach" if bleach else "keep",
            nothing="keep",
            netem=MIDDLEBOX,
        ),
    ] = Field(
        None,
        description="bleach: a middlebox before the queue clears both bits of ECN in every packet; keep if absent",
        examples=["bleach"],
    )
    blackhole: Annotated[BlackholeText | None, number(BYTES, "blackhole_bytes", nothing="none", netem=MIDDLEBOX)] = (
        Field(
            None,
            description="IP packets longer than this vanish before the queue, without a word to anyone; none if absent",
        )
    )
    police: Annotated[
        PoliceKeys | None,
        KeyRow(
            plan=("police_bps", "police_bytes"),
            words=police_words,
            nothing="none",
            netem="only our own model has such a policer",
        ),
    ] = Field(
        None,
        description="a policer before the queue drops what exceeds a token bucket; none if absent",
        examples=["{rate: 10Mbit/s, burst: 32kB}", "none"],
    )
    burst: Annotated[
        BurstText | None,
        KeyRow(
            plan=("burst_bytes",), unit=BYTES, words=BYTES.words_or_none, nothing="none", netem=BUCKET, trace="rate"
        ),
    ] = Field(
        None,
        description="the rate is a token bucket's, of this depth: so much passes at once after a pause; none if absent",
    )
    peak: Annotated[
        PeakText | None,
        KeyRow(
            plan=("peak_bps",), unit=BIT_RATE, words=BIT_RATE.words_or_none, nothing="none", netem=BUCKET, trace="rate"
        ),
    ] = Field(None, description="the rate at which a burst passes; without limit if absent, so that it takes no time")
    aggregate: Annotated[
        AggregateKeys | None, KeyRow(plan=("aggregate",), words=aggregate_words, nothing="none", netem=RADIO)
    ] = Field(
        None,
        description="packets that wait are sent together and arrive together, as on Wi-Fi; none if absent",
        examples=["{packets: 64, time: 4ms, gap: 150us}", "none"],
    )
    duplex: Annotated[
        Literal["full", "half"] | None,
        KeyRow(plan=("half_duplex",), words=lambda half: "half" if half else "full", nothing="full", netem=RADIO),
    ] = Field(
        None,
        description="half: both directions share one medium, so that one waits while the other one sends, and they "
        "take turns where both wait; full if absent",
        examples=["half"],
    )
    slot: Annotated[
        Duration | Literal["none"] | None,
        number_within(NANOSECONDS, "slot_ns", NS_PER_US, NS_PER_SECOND, "1ms", like="8ms", netem=RADIO),
    ] = Field(
        None,
        description="packets leave at the ends of slots of this length (a TTI of LTE or NR), each at the end of "
        "the one in which its last bit was sent; none if absent",
    )
    harq: Annotated[
        HarqKeys | None, KeyRow(plan=("harq",), becomes=compile_harq, words=harq_words, nothing="none", netem=RADIO)
    ] = Field(
        None,
        description="transmissions that fail are repeated a round later; none if absent",
        examples=["{errors: 10%, round: 8ms}", "none"],
    )
    acks: Annotated[
        Literal["filter", "keep"] | None,
        KeyRow(
            plan=("ack_filter",),
            words=lambda filters: "filter" if filters else "keep",
            nothing="keep",
            netem="the kernel's queues filter none",
        ),
    ] = Field(
        None,
        description="filter: a pure ACK of TCP takes the place of an earlier one of its flow that still waits in the "
        "queue (RFC 3449); keep if absent",
        examples=["filter"],
    )
    trace: Annotated[
        TraceKeys | None,
        KeyRow(plan=("trace",), netem="the kernel's parts follow no trace", live=False, table=traces.words),
    ] = Field(
        None,
        description="rate, delay, loss or buffer over time, from a file; none if absent",
        examples=["{file: lte.csv}"],
    )


ROWS: Mapping[str, KeyRow] = {
    key: row for key, field in DirectionKeys.model_fields.items() for row in field.metadata if isinstance(row, KeyRow)
}
"""The table of a link's settings, by key."""


class Direction(Struct, kw_only=True):
    """Impair → queue → rate → delay line (emulator/model/src/config.rs); probabilities in parts per billion.

    A field that has a default is left out of a plan where it has its default; so is each that is new.
    """

    framing: Framing
    rate_bps: int
    loss: Loss
    corrupt_ppb: int
    duplicate_ppb: int
    ecn_bleach: bool
    blackhole_bytes: int
    police_bps: int
    police_bytes: int
    burst_bytes: int
    peak_bps: int
    aggregate: Aggregate
    half_duplex: bool
    slot_ns: int
    harq: Harq
    ack_filter: bool
    queue: Queue
    delay: Delay
    reorder: bool
    displace_ppb: int
    displace_packets: int
    displace_within_ns: int
    trace: Trace
    seed: int
    store_packets: int
    store_bytes: int
