"""One direction of an emulated link: all its stages."""

from __future__ import annotations

from dataclasses import dataclass

from ewan.labs.base.units import Duration, Fraction, Rate, Size
from ewan.labs.stages.delay import ConstantDelay, Delay
from ewan.labs.stages.loss import Loss, NoLoss
from ewan.labs.stages.queue import Queue
from ewan.labs.stages.radio import NO_AGGREGATE, NO_HARQ, Aggregate, Harq, aggregate_words, harq_words
from ewan.labs.stages.trace import NoTrace, Trace
from ewan.labs.stages.trace import words as trace_words


@dataclass(frozen=True, slots=True)
class Framing:
    """What a packet's length counts: max(bytes of the IP packet + overhead, minimum)."""

    overhead_bytes: int
    minimum_bytes: int


@dataclass(frozen=True, slots=True)
class Direction:
    """Impair → queue → rate → delay line (emulator/model/src/config.rs); probabilities in parts per billion."""

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


def plain_direction(framing: Framing, rate_bps: int, queue: Queue, delay_ns: int) -> Direction:
    """A link that only queues, sends and delays, whose datapath holds no packet."""
    return Direction(
        framing=framing,
        rate_bps=rate_bps,
        loss=NoLoss(),
        corrupt_ppb=0,
        duplicate_ppb=0,
        ecn_bleach=False,
        blackhole_bytes=0,
        police_bps=0,
        police_bytes=0,
        burst_bytes=0,
        peak_bps=0,
        aggregate=NO_AGGREGATE,
        half_duplex=False,
        slot_ns=0,
        harq=NO_HARQ,
        ack_filter=False,
        queue=queue,
        delay=ConstantDelay(delay_ns),
        reorder=False,
        displace_ppb=0,
        displace_packets=0,
        displace_within_ns=0,
        trace=NoTrace(),
        seed=0,
        store_packets=0,
        store_bytes=0,
    )


def framing_words(framing: Framing) -> str:
    """The framing's name as a description writes it, or the bytes that it adds."""
    names = {38: "wire", 18: "ethernet", 14: "header", 0: "ip"}
    return names.get(framing.overhead_bytes, f"+{framing.overhead_bytes}B")


def police_words(rate_bps: int, depth_bytes: int) -> str:
    """Rate and depth of a policer's bucket."""
    return f"{Rate(rate_bps)} + {Size(depth_bytes)}" if rate_bps else "none"


def displace_words(share_ppb: int, packets: int, within_ns: int) -> str:
    """Which share is displaced by how many packets, and for how long at most."""
    return f"{Fraction(share_ppb)} by {packets} within {Duration(within_ns)}" if share_ppb else "none"


def impairment_words(direction: Direction) -> list[str]:
    """The impairments that have no column of their own in tables, as `corrupt 0.1%`."""
    words = [f"corrupt {Fraction(direction.corrupt_ppb)}"] if direction.corrupt_ppb else []
    words += [f"duplicate {Fraction(direction.duplicate_ppb)}"] if direction.duplicate_ppb else []
    words += ["ecn bleach"] if direction.ecn_bleach else []
    words += [f"blackhole {Size(direction.blackhole_bytes)}"] if direction.blackhole_bytes else []
    words += [f"police {police_words(direction.police_bps, direction.police_bytes)}"] if direction.police_bps else []
    words += [f"burst {Size(direction.burst_bytes)}"] if direction.burst_bytes else []
    words += [f"peak {Rate(direction.peak_bps)}"] if direction.peak_bps else []
    words += [] if direction.aggregate == NO_AGGREGATE else [f"aggregate {aggregate_words(direction.aggregate)}"]
    words += ["duplex half"] if direction.half_duplex else []
    words += [f"slot {Duration(direction.slot_ns)}"] if direction.slot_ns else []
    words += [] if direction.harq == NO_HARQ else [f"harq {harq_words(direction.harq)}"]
    words += ["acks filter"] if direction.ack_filter else []
    words += ["reorder"] if direction.reorder else []
    displaced = direction.displace_ppb, direction.displace_packets, direction.displace_within_ns
    words += [f"displace {displace_words(*displaced)}"] if direction.displace_ppb else []
    return words + ([] if isinstance(direction.trace, NoTrace) else [trace_words(direction.trace)])
