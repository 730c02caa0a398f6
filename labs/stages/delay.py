"""Stage 4, the delay line: how long a packet is under way after its last bit has left.

Nanoseconds. The distributions are described in emulator/model/src/config.rs (`Delay`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from ewan.labs.base.units import Duration, Fraction


@dataclass(frozen=True, slots=True)
class ConstantDelay:
    """The same for every packet."""

    delay_ns: int
    kind: Literal["constant"] = field(default="constant", init=False)


@dataclass(frozen=True, slots=True)
class UniformDelay:
    """Uniform within ± jitter around the delay."""

    delay_ns: int
    jitter_ns: int
    kind: Literal["uniform"] = field(default="uniform", init=False)


@dataclass(frozen=True, slots=True)
class NormalDelay:
    """Normal; jitter is the standard deviation."""

    delay_ns: int
    jitter_ns: int
    kind: Literal["normal"] = field(default="normal", init=False)


@dataclass(frozen=True, slots=True)
class GaussMarkovDelay:
    """Normal; jitter is the standard deviation, and each packet's deviation is correlated with the one before it."""

    correlation_ppb: int
    delay_ns: int
    jitter_ns: int
    kind: Literal["gauss_markov"] = field(default="gauss_markov", init=False)


@dataclass(frozen=True, slots=True)
class ParetoDelay:
    """From delay - jitter on, a tail of shape 3 whose standard deviation is jitter."""

    delay_ns: int
    jitter_ns: int
    kind: Literal["pareto"] = field(default="pareto", init=False)


@dataclass(frozen=True, slots=True)
class DelayTable:
    """One of the values for each packet, all equally likely: measured delays."""

    delays_ns: tuple[int, ...]
    kind: Literal["table"] = field(default="table", init=False)


Delay = ConstantDelay | UniformDelay | NormalDelay | GaussMarkovDelay | ParetoDelay | DelayTable


_NORMAL_JITTERS, _PARETO_JITTERS = 4, 10
"""Where emulator/model/src/distribution.rs cuts the distributions."""


def longest_ns(delay: Delay) -> int:
    """The longest delay that a packet can draw."""
    match delay:
        case ConstantDelay(delay_ns):
            return delay_ns
        case UniformDelay(delay_ns, jitter_ns):
            return delay_ns + jitter_ns
        case NormalDelay(delay_ns=delay_ns, jitter_ns=jitter_ns):
            return delay_ns + _NORMAL_JITTERS * jitter_ns
        case GaussMarkovDelay(delay_ns=delay_ns, jitter_ns=jitter_ns):
            return delay_ns + _NORMAL_JITTERS * jitter_ns
        case ParetoDelay(delay_ns, jitter_ns):
            return delay_ns + _PARETO_JITTERS * jitter_ns
        case DelayTable(delays_ns):
            return max(delays_ns)
        case _:
            assert_never(delay)


def nominal_ns(delay: Delay) -> int:
    """The delay that the link is said to have; of a table the mean, rounded down."""
    return sum(delay.delays_ns) // len(delay.delays_ns) if isinstance(delay, DelayTable) else delay.delay_ns


def words(delay: Delay) -> str:
    """`50ms`, `50ms ± 5ms normal`, `50ms ± 5ms normal correlated 90%`, `table of 300`."""
    match delay:
        case DelayTable(delays_ns):
            return f"table of {len(delays_ns)}"
        case ConstantDelay(delay_ns):
            return str(Duration(delay_ns))
        case UniformDelay(delay_ns, jitter_ns) | NormalDelay(delay_ns, jitter_ns) | ParetoDelay(delay_ns, jitter_ns):
            return f"{Duration(delay_ns)} ± {Duration(jitter_ns)} {delay.kind}"
        case GaussMarkovDelay(correlation_ppb, delay_ns, jitter_ns):
            return f"{Duration(delay_ns)} ± {Duration(jitter_ns)} normal correlated {Fraction(correlation_ppb)}"
        case _:
            assert_never(delay)


def least_ns(delay: Delay) -> int:
    """What hardly a packet stays below: the smallest delay; of a normal distribution three standard deviations less
    than its mean, below which one of 740 is.
    """
    match delay:
        case DelayTable(delays_ns):
            return min(delays_ns)
        case ConstantDelay(delay_ns):
            return delay_ns
        case UniformDelay(delay_ns, jitter_ns) | ParetoDelay(delay_ns, jitter_ns):
            return max(0, delay_ns - jitter_ns)
        case NormalDelay(delay_ns, jitter_ns) | GaussMarkovDelay(delay_ns=delay_ns, jitter_ns=jitter_ns):
            return max(0, delay_ns - 3 * jitter_ns)
        case _:
            assert_never(delay)
