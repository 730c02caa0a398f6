"""One direction of an emulated link, put together from its stages."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from ewan.labs.base.units import Duration, Rate, Size
from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages import acks, bucket, displace, radio
from ewan.labs.compile.stages import delay as delays
from ewan.labs.compile.stages import loss as losses
from ewan.labs.compile.stages import queue as queues
from ewan.labs.compile.stages import trace as traces
from ewan.labs.compile.stages.context import LinkContext, Obstacle
from ewan.labs.compile.stages.framing import check_rate, framing_of
from ewan.labs.compile.stages.store import compile_store
from ewan.labs.spec import Spec, fields
from ewan.labs.stages import DelayTable, Direction, LossPattern
from ewan.labs.stages.trace import length

MOST_TABLED = 1 << 23  # in all tables and traces of a plan, which says them for each direction of each link


class Directions:
    """Compiles the directions of one lab; equal ones share everything but their seed."""

    def __init__(self, spec: Spec) -> None:
        self._seed = str(spec.description.seed)
        self._known: dict[tuple[Settings, str, int, int], Direction] = {}
        self._tabled = 0

    def direction(self, way: Settings, at: LinkContext, heading: str) -> Direction:
        """`heading` is forward or backward; it and the link's name give the seed, whatever the order of links."""
        key = (way, at.role, at.delay_ns, at.mtu)
        same = self._known.get(key)
        if same is None:
            same = self._known[key] = compile_direction(way, at)
        self._count_tables(way, at, same)
        text = f"{self._seed}/{at.link}/{heading}".encode()
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
        return Direction(  # not `replace`, which takes several times as long, for each of a lab's directions
            same.framing,
            same.rate_bps,
            same.loss,
            same.corrupt_ppb,
            same.duplicate_ppb,
            same.ecn_bleach,
            same.blackhole_bytes,
            same.police_bps,
            same.police_bytes,
            same.burst_bytes,
            same.peak_bps,
            same.aggregate,
            same.half_duplex,
            same.slot_ns,
            same.harq,
            same.ack_filter,
            same.queue,
            same.delay,
            same.reorder,
            same.displace_ppb,
            same.displace_packets,
            same.displace_within_ns,
            same.trace,
            seed,
            same.store_packets,
            same.store_bytes,
        )

    def _count_tables(self, way: Settings, at: LinkContext, direction: Direction) -> None:
        delays_tabled = len(direction.delay.delays_ns) if isinstance(direction.delay, DelayTable) else 0
        losses_tabled = len(direction.loss.pattern) if isinstance(direction.loss, LossPattern) else 0
        rows = length(direction.trace)
        self._tabled += delays_tabled + losses_tabled + rows
        if self._tabled > MOST_TABLED:
            message = f"{at.link} and the links before it have {self._tabled} delays and losses from tables"
            message += " and rows of traces" if rows else ""
            message = f"{message}: write shorter tables, for at most {MOST_TABLED} on all links"
            raise at.error(way, "trace" if rows else "delay" if delays_tabled else "loss", message, None)


def compile_direction(way: Settings, at: LinkContext) -> Direction:
    """All stages, with seed 0; DescriptionError for what cannot be: a buffer below one packet, say."""
    check_rate(way, at)
    trace = traces.compile_trace(way, at)
    queue = queues.compile_queue(way, at)
    delay, longest_ns = delays.compile_delay(way, at)
    burst_bytes, peak_bps = bucket.compile_burst(way, at)
    police_bps, police_bytes = bucket.compile_police(way, at)
    displace_ppb, displace_packets, displace_within_ns = displace.compile_displace(way, at)
    longest_ns += displace_within_ns + radio.longest_ns(way)
    highest = replace(way, rate=Rate(traces.highest_bps(way, longest_ns)))
    packets, size = compile_store(highest, at, queue, longest_ns, burst_bytes)
    written = way.written
    return Direction(
        framing=framing_of(way),
        rate_bps=way.rate.bps,
        loss=losses.compile_loss(way, at),
        corrupt_ppb=written.corrupt.ppb if written.corrupt is not None else 0,
        duplicate_ppb=written.duplicate.ppb if written.duplicate is not None else 0,
        ecn_bleach=written.ecn == "bleach",
        blackhole_bytes=written.blackhole.bytes if isinstance(written.blackhole, Size) else 0,
        police_bps=police_bps,
        police_bytes=police_bytes,
        burst_bytes=burst_bytes,
        peak_bps=peak_bps,
        aggregate=radio.compile_aggregate(way, at, trace),
        half_duplex=radio.compile_duplex(way, at, trace, burst_bytes),
        slot_ns=written.slot.ns if isinstance(written.slot, Duration) else 0,
        harq=radio.compile_harq(way),
        ack_filter=acks.compile_acks(way, at, queue),
        queue=queue,
        delay=delay,
        reorder=bool(written.reorder),
        displace_ppb=displace_ppb,
        displace_packets=displace_packets,
        displace_within_ns=displace_within_ns,
        trace=trace,
        seed=0,
        store_packets=packets,
        store_bytes=size,
    )


def described(direction: Direction) -> fields.Direction:
    """What a description would say of a direction, where a change of another key depends on it.

    That is: the rate, its burst and the buffer, which bound each other, the delay, whose keys make up one stage, what
    displaced packets need of the store, and the medium, which knows no bursts. A change replaces all else as a whole.
    """
    keys = {"rate": Rate(direction.rate_bps)} | queues.described(direction.queue)
    keys |= bucket.described(direction) | displace.described(direction)
    keys |= {"duplex": "half"} if direction.half_duplex else {}
    return fields.Direction.model_construct(**keys, **delays.described(direction.delay, direction.reorder))


def _middlebox(direction: Direction) -> Obstacle | None:
    if direction.ecn_bleach:
        return "ecn", 'netem has no such middlebox: write "ecn: keep"'
    return ("blackhole", 'netem has no such middlebox: write "blackhole: none"') if direction.blackhole_bytes else None


def obstacle(direction: Direction, way: Settings) -> Obstacle | None:
    """The first setting that netem and the kernel's queues cannot express; None if they express all."""
    return (
        losses.obstacle(direction.loss)
        or _middlebox(direction)
        or bucket.obstacle(direction)
        or radio.obstacle(direction)
        or delays.obstacle(direction.delay, direction.reorder, way)
        or displace.obstacle(direction)
        or acks.obstacle(direction)
        or queues.obstacle(direction.queue)
        or traces.obstacle(direction.trace)
    )
