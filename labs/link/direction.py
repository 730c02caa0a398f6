"""One direction of an emulated link, put together from its stages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from ewan.labs.base import codec
from ewan.labs.base.units import Rate
from ewan.labs.link import acks, bucket, displace, radio
from ewan.labs.link import delay as delays
from ewan.labs.link import loss as losses
from ewan.labs.link import queue as queues
from ewan.labs.link import trace as traces
from ewan.labs.link.context import LinkContext, Obstacle
from ewan.labs.link.delay import ConstantDelay, DelayTable
from ewan.labs.link.disciplines.drop_tail import DropTail
from ewan.labs.link.framing import Framing, check_rate, framing_of
from ewan.labs.link.keys import ROWS, Direction, DirectionKeys
from ewan.labs.link.loss import NO_LOSS, LossPattern
from ewan.labs.link.queue import Queue
from ewan.labs.link.radio import NO_AGGREGATE, NO_HARQ
from ewan.labs.link.row import KeyRow
from ewan.labs.link.settings import DirectionSettings
from ewan.labs.link.store import compile_store
from ewan.labs.link.trace import NO_TRACE, length

Heading = Literal["forward", "backward"]
"""One of a link's two directions: from its first end to its second one, or back."""

MOST_TABLED = 1 << 23  # in all tables and traces of a plan, which says them for each direction of each link


def plain_direction(framing: Framing, rate_bps: int, queue: Queue, delay_ns: int) -> Direction:
    """A plain link, which only queues, sends and delays, and whose datapath holds no packet."""
    return Direction(
        framing=framing,
        rate_bps=rate_bps,
        queue=queue,
        delay=ConstantDelay(delay_ns),
        loss=NO_LOSS,
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
        reorder=False,
        displace_ppb=0,
        displace_packets=0,
        displace_within_ns=0,
        trace=NO_TRACE,
        seed=0,
        store_packets=0,
        store_bytes=0,
    )


_PLAIN = plain_direction(Framing(0, 0), 0, Queue(None, None, DropTail()), 0)
EVERY = frozenset({"framing", "rate_bps", "queue", "delay"})
"""Fields that every link decides, so that tables always say them."""
TABLE: Mapping[str, KeyRow] = dict(
    sorted(ROWS.items(), key=lambda item: Direction.__struct_fields__.index(item[1].plan[0]))
)
"""The rows of all keys in the order of the plan's fields."""


def is_plain(row: KeyRow, direction: Direction) -> bool:
    """Return whether a plain link has the same value. False for the properties that every link has: its rate, delay,
    queue and framing."""
    return not EVERY.intersection(row.plan) and row.values(direction) == row.values(_PLAIN)


def column_words(direction: Direction) -> dict[str, str]:
    """By key what tables have columns for; empty where nothing is asked for."""
    said = ((key, row) for key, row in TABLE.items() if row.column and row.words is not None)
    return {key: "" if is_plain(row, direction) else row.said(direction) for key, row in said}


def impairment_words(direction: Direction) -> list[str]:
    """The impairments that have no column of their own in tables, as `corrupt 0.1%`."""
    asked = ((key, row) for key, row in TABLE.items() if not row.column and not is_plain(row, direction))
    return [row.table(*row.values(direction)) if row.table else f"{key} {row.said(direction)}" for key, row in asked]


class Directions:
    """Compiles the directions of one lab; equal ones share everything but their seed."""

    def __init__(self, lab_seed: int) -> None:
        self._seed = str(lab_seed)
        self._known: dict[tuple[DirectionSettings, str, int, int], Direction] = {}
        self._tabled = 0

    def direction(self, way: DirectionSettings, at: LinkContext, heading: str) -> Direction:
        """`heading` is forward or backward; it and the link's name give the seed, whatever the order of links."""
        key = (way, at.role, at.delay_ns, at.mtu)
        same = self._known.get(key)
        if same is None:
            same = self._known[key] = compile_direction(way, at)
        self._count_tables(way, at, same)
        text = f"{self._seed}/{at.link}/{heading}".encode()
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
        return codec.replace(same, seed=seed)

    def _count_tables(self, way: DirectionSettings, at: LinkContext, direction: Direction) -> None:
        delays_tabled = len(direction.delay.delays_ns) if isinstance(direction.delay, DelayTable) else 0
        losses_tabled = len(direction.loss.pattern) if isinstance(direction.loss, LossPattern) else 0
        rows = length(direction.trace)
        self._tabled += delays_tabled + losses_tabled + rows
        if self._tabled > MOST_TABLED:
            message = f"{at.link} and the links before it have {self._tabled} delays and losses from tables"
            message += " and rows of traces" if rows else ""
            message = f"{message}: write shorter tables, for at most {MOST_TABLED} on all links"
            raise at.error(way, "trace" if rows else "delay" if delays_tabled else "loss", message, None)


def compile_direction(way: DirectionSettings, at: LinkContext) -> Direction:
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
    plain = plain_direction(framing_of(way), way.rate.bps, queue, at.delay_ns)
    return codec.replace(
        plain,
        **_becoming(way.written),
        loss=losses.compile_loss(way, at),
        police_bps=police_bps,
        police_bytes=police_bytes,
        burst_bytes=burst_bytes,
        peak_bps=peak_bps,
        aggregate=radio.compile_aggregate(way, at, trace),
        half_duplex=radio.compile_duplex(way, at, trace, burst_bytes),
        ack_filter=acks.compile_acks(way, at, queue),
        delay=delay,
        displace_ppb=displace_ppb,
        displace_packets=displace_packets,
        displace_within_ns=displace_within_ns,
        trace=trace,
        store_packets=packets,
        store_bytes=size,
    )


def _becoming(written: DirectionKeys) -> dict[str, Any]:
    """The fields that what is written for one key decides, whatever else is written."""
    said = ((row, getattr(written, key)) for key, row in ROWS.items() if row.becomes is not None)
    return {row.plan[0]: row.becomes(value) for row, value in said if value is not None and row.becomes is not None}


def described(direction: Direction) -> DirectionKeys:
    """The keys of a description of this direction on which a change of another key depends.

    These are the rate, its burst and the buffer, which bound each other, the delay, whose keys make up one stage, the
    store that displaced packets need, and the medium, which knows no bursts. A change replaces all other keys as a
    whole.
    """
    keys = DirectionKeys.model_construct(
        rate=Rate(direction.rate_bps),
        buffer=queues.described(direction.queue),
        **bucket.described(direction),
        **displace.described(direction),
        **delays.described(direction.delay, direction.reorder),
    )
    return keys.model_copy(update={"duplex": "half"}) if direction.half_duplex else keys


def obstacle(direction: Direction, way: DirectionSettings) -> Obstacle | None:
    """The first setting that netem and the kernel's queues cannot express; None if they express all."""
    for key, row in TABLE.items():
        if callable(row.netem):
            if found := row.netem(direction, way):
                return found
        elif row.netem is not None and not is_plain(row, direction):
            return key, f'{row.netem}: write "{key}: {row.nothing}"' if row.nothing else row.netem
    return None
