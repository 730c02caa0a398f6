"""What a radio link adds at the rate stage and behind it (emulator/model/src/radio.rs).

Times in ns, probabilities in parts per billion.
"""

from __future__ import annotations

from dataclasses import dataclass

from ewan.labs.base.units import Duration, Fraction


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Packets that wait are sent together, up to so many; none joins once the others take `time_ns` (0: no limit).

    Before each transmission nothing is sent for `gap_ns`. 0 packets: each packet is sent on its own.
    """

    gap_ns: int
    packets: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class Harq:
    """A transmission fails with this probability and is repeated `round_ns` later, up to `rounds` times."""

    error_ppb: int
    round_ns: int
    rounds: int

    @property
    def longest_ns(self) -> int:
        """How long all repetitions of a packet take."""
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
