"""What becomes different in one direction of a running link; emulator/model/src/change.rs is the same in Rust."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

from ewan.labs.base.typed import read_typed
from ewan.labs.base.units import Duration, Fraction, Rate, Size
from ewan.labs.link import delay as delays
from ewan.labs.link import loss as losses
from ewan.labs.link import queue as queues
from ewan.labs.link.bucket import police_words
from ewan.labs.link.delay import Delay
from ewan.labs.link.direction import Direction
from ewan.labs.link.displace import displace_words
from ewan.labs.link.loss import Loss
from ewan.labs.link.queue import Queue
from ewan.labs.link.radio import Aggregate, Harq, aggregate_words, harq_words


@dataclass(frozen=True, slots=True)
class Change:
    """Keys of a `Direction`, and what happens to its trace; what is None stays as it is."""

    rate_bps: int | None = None
    delay: Delay | None = None
    reorder: bool | None = None
    displace_ppb: int | None = None
    displace_packets: int | None = None
    displace_within_ns: int | None = None
    loss: Loss | None = None
    corrupt_ppb: int | None = None
    duplicate_ppb: int | None = None
    ecn_bleach: bool | None = None
    blackhole_bytes: int | None = None
    police_bps: int | None = None
    police_bytes: int | None = None
    burst_bytes: int | None = None
    peak_bps: int | None = None
    aggregate: Aggregate | None = None
    half_duplex: bool | None = None
    slot_ns: int | None = None
    harq: Harq | None = None
    ack_filter: bool | None = None
    queue: Queue | None = None
    restart_trace: bool | None = None
    """The trace begins anew; true or absent."""

    SPARSE: ClassVar[bool] = True

    def applied(self, direction: Direction) -> Direction:
        """What a direction is after it."""
        return replace(direction, **{key: value for key, value in self._named().items() if key != "restart_trace"})

    def to_data(self) -> dict[str, Any]:
        """As the control socket, a program and the journal of a kernel link say it: without what stays."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Change:
        """The change that `to_data` wrote; ValueError for what is none."""
        change = read_typed(cls, dict(data), "change")
        assert isinstance(change, cls)
        return change

    def _named(self) -> dict[str, Any]:
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}


def _or_none(number: int, quantity: Callable[[int], object]) -> str:
    return str(quantity(number)) if number else "none"


def words(change: Change) -> str:
    """A change of a running link in the words of `ewan set`."""
    displaced = change.displace_ppb or 0, change.displace_packets or 0, change.displace_within_ns or 0
    said = {
        "rate": None if change.rate_bps is None else Rate(change.rate_bps),
        "delay": None if change.delay is None else delays.words(change.delay),
        "reorder": change.reorder,
        "displace": None if change.displace_packets is None else displace_words(*displaced),
        "loss": None if change.loss is None else losses.words(change.loss) or "0%",
        "corrupt": None if change.corrupt_ppb is None else Fraction(change.corrupt_ppb),
        "duplicate": None if change.duplicate_ppb is None else Fraction(change.duplicate_ppb),
        "ecn": None if change.ecn_bleach is None else ("bleach" if change.ecn_bleach else "keep"),
        "blackhole": None if change.blackhole_bytes is None else _or_none(change.blackhole_bytes, Size),
        "police": None if change.police_bytes is None else police_words(change.police_bps or 0, change.police_bytes),
        "burst": None if change.burst_bytes is None else _or_none(change.burst_bytes, Size),
        "peak": None if change.peak_bps is None else _or_none(change.peak_bps, Rate),
        "aggregate": None if change.aggregate is None else aggregate_words(change.aggregate),
        "duplex": None if change.half_duplex is None else ("half" if change.half_duplex else "full"),
        "slot": None if change.slot_ns is None else _or_none(change.slot_ns, Duration),
        "harq": None if change.harq is None else harq_words(change.harq),
        "acks": None if change.ack_filter is None else ("filter" if change.ack_filter else "keep"),
        "buffer": None if change.queue is None else queues.limit_words(change.queue),
        "queue": None if change.queue is None else change.queue.discipline.words,
        "trace": None if change.restart_trace is None else "restarted",
    }
    return " ".join(f"{key}={value}" for key, value in said.items() if value is not None)
