"""The mechanisms that a radio link adds at the rate stage and behind it: aggregates, a shared medium, slots and HARQ
(emulator/model/src/radio.rs).

Times in ns, probabilities in parts per billion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, PlainValidator

from ewan.labs.base.codec import Struct
from ewan.labs.base.model import GroupOrNone
from ewan.labs.base.units import Duration, Fraction
from ewan.labs.base.values import Count, written_as
from ewan.labs.link.context import LinkContext
from ewan.labs.link.trace import Trace, TraceOpportunities

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings

_SHORTEST_ROUND, _LONGEST_ROUND = Duration.parse("1us"), Duration.parse("1s")


def _round(value: object) -> Duration:
    """The parameters of HARQ."""
    duration = Duration.parse(value, _LONGEST_ROUND.ns)
    if duration.ns >= _SHORTEST_ROUND.ns:
        return duration
    raise ValueError(f'write {_SHORTEST_ROUND} to {_LONGEST_ROUND}, like "8ms"')


def _errors(value: object) -> Fraction:
    fraction = Fraction.parse(value)
    if fraction.ppb <= 900_000_000:
        return fraction
    raise ValueError('write at most "90%"')


RadioTimeText = Annotated[
    Duration, PlainValidator(lambda value: Duration.parse(value, _LONGEST_ROUND.ns)), written_as("duration", "150us")
]
RoundText = Annotated[Duration, PlainValidator(_round), written_as("duration", "8ms")]
ErrorsText = Annotated[Fraction, PlainValidator(_errors), written_as("fraction", "10%")]


class AggregateKeys(GroupOrNone):
    """Packets that wait are sent together and arrive together, as in an A-MPDU (IEEE 802.11)."""

    needed: ClassVar[frozenset[str]] = frozenset({"packets"})
    example: ClassVar[str] = "{packets: 64, time: 4ms, gap: 150us}"
    packets: Annotated[int, Count(1, 256)] | None = Field(None, description="most packets of a transmission")
    time: RadioTimeText | None = Field(
        None, description="no packet joins a transmission that takes so long already; without limit if absent"
    )
    gap: RadioTimeText | None = Field(
        None,
        description="before each transmission nothing is sent for so long: contention, preamble, acknowledgement; "
        "0 if absent",
        examples=["150us"],
    )


class HarqKeys(GroupOrNone):
    """A transmission that failed is repeated a round later (hybrid ARQ of LTE and NR); later packets wait for it."""

    needed: ClassVar[frozenset[str]] = frozenset({"errors", "round"})
    example: ClassVar[str] = "{errors: 10%, round: 8ms}"
    errors: ErrorsText | None = Field(None, description="transmissions that fail; at most 90%", examples=["10%"])
    round: RoundText | None = Field(None, description="from a transmission to its repetition", examples=["8ms"])
    rounds: Annotated[int, Count(1, 16)] = Field(
        3, description="most repetitions; the last one does not fail; 3 if absent"
    )

    @property
    def asks_nothing(self) -> bool:
        """Also where no transmission fails."""
        return self.errors is None or not self.errors.ppb


class Aggregate(Struct):
    """Packets that wait are sent together, up to so many; none joins once the others take `time_ns` (0: no limit).

    Before each transmission nothing is sent for `gap_ns`. 0 packets: each packet is sent on its own.
    """

    gap_ns: int
    packets: int
    time_ns: int


class Harq(Struct):
    """A transmission fails with this probability and is repeated `round_ns` later, up to `rounds` times."""

    error_ppb: int
    round_ns: int
    rounds: int

    @property
    def longest_ns(self) -> int:
        """The time that all repetitions of a packet take."""
        return self.round_ns * self.rounds


NO_AGGREGATE, NO_HARQ = Aggregate(0, 0, 0), Harq(0, 0, 0)


def aggregate_words(aggregate: Aggregate) -> str:
    """`64 packets, 4ms, gap 100us`."""
    if aggregate == NO_AGGREGATE:
        return "none"
    times = [str(Duration(aggregate.time_ns))] if aggregate.time_ns else []
    times += [f"gap {Duration(aggregate.gap_ns)}"] if aggregate.gap_ns else []
    return ", ".join([f"{aggregate.packets} packets", *times])


def harq_words(harq: Harq) -> str:
    """`10%, 3 rounds of 8ms`."""
    if harq == NO_HARQ:
        return "none"
    return (
        f"{Fraction(harq.error_ppb)}, {harq.rounds} round{'s' if harq.rounds > 1 else ''} of {Duration(harq.round_ns)}"
    )


def compile_aggregate(way: DirectionSettings, at: LinkContext, trace: Trace) -> Aggregate:
    """DescriptionError where a trace says when packets leave."""
    written = way.written.aggregate
    if written is None or written.packets is None:
        return NO_AGGREGATE
    if isinstance(trace, TraceOpportunities):
        raise at.error(way, "aggregate", 'the trace says when packets leave: write "aggregate: none"', None)
    return Aggregate(
        gap_ns=written.gap.ns if written.gap is not None else 0,
        packets=written.packets,
        time_ns=written.time.ns if written.time is not None else 0,
    )


def compile_duplex(way: DirectionSettings, at: LinkContext, trace: Trace, burst_bytes: int) -> bool:
    """DescriptionError where something else than the rate says when packets leave."""
    if way.written.duplex != "half":
        return False
    if isinstance(trace, TraceOpportunities):
        raise at.error(way, "duplex", 'the trace says when packets leave: write "duplex: full"', None)
    if burst_bytes:
        raise at.error(way, "duplex", 'who waits for tokens holds the medium: write "burst: none"', None)
    return True


def compile_harq(written: HarqKeys) -> Harq:
    """The retransmissions of HARQ, with their times."""
    if written.errors is None or written.round is None or not written.errors.ppb:
        return NO_HARQ
    return Harq(error_ppb=written.errors.ppb, round_ns=written.round.ns, rounds=written.rounds)


def longest_ns(way: DirectionSettings) -> int:
    """The longest time for which a packet may be held behind the rate stage, in addition to the delay."""
    harq = NO_HARQ if way.written.harq is None else compile_harq(way.written.harq)
    return harq.longest_ns + (way.written.slot.ns if isinstance(way.written.slot, Duration) else 0)
