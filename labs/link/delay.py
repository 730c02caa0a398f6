"""Stage 4, the delay line: how long a packet is under way after its last bit has left.

Constant, spread by jitter, or from a table; nanoseconds. The distributions are described in
emulator/model/src/config.rs (`Delay`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, assert_never

from pydantic import PlainValidator, ValidationInfo

from ewan.labs.base.codec import Variant
from ewan.labs.base.units import PPB, Duration, Fraction
from ewan.labs.base.values import LONGEST_TABLE, read_file, written_as
from ewan.labs.link.context import INT32, LinkContext, Obstacle
from ewan.labs.link.trace import most

if TYPE_CHECKING:
    from ewan.labs.link.keys import Direction
    from ewan.labs.link.settings import DirectionSettings

# What a table of delays may show of itself in an error: another file, read as root, is not to be seen that way.
_QUANTITY = re.compile(r"[+-]?[0-9.]{1,20} ?[A-Za-zµ/]{0,6}")


@dataclass(frozen=True, slots=True)
class DelayFile:
    """Measured delays, one drawn for each packet."""

    file: str
    delays_ns: tuple[int, ...]
    mean_ns: int


def _delay(value: object, info: ValidationInfo) -> Duration | DelayFile:
    if not isinstance(value, dict):
        return Duration.parse(value)
    name = value.get("table")
    if set(value) != {"table"} or not isinstance(name, str):
        raise ValueError('write a delay as "50ms" or "{table: delays.txt}"')
    delays = []
    lines = read_file(name, info).splitlines()
    if len(lines) > 2 * LONGEST_TABLE:  # comments and empty ones too
        raise ValueError(f"{name} has {len(lines)} lines: write at most {LONGEST_TABLE} delays, one a line")
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        if text:
            try:
                delays.append(Duration.parse(text).ns)
            except ValueError as error:
                wrong = f'"{text}": {error}' if _QUANTITY.fullmatch(text) else 'write a delay a line, like "50ms"'
                raise ValueError(f"{name}:{number}: {wrong}") from None
    if not 0 < len(delays) <= LONGEST_TABLE:
        raise ValueError(f"{name} holds {len(delays)} delays: write 1 to {LONGEST_TABLE}, one a line")
    return DelayFile(name, tuple(delays), sum(delays) // len(delays))


def _correlation(value: object) -> Fraction:
    """The correlation of each packet's delay with that of the packet before it."""
    fraction = Fraction.parse(value)
    if fraction.ppb < PPB:
        return fraction
    raise ValueError('all packets would be alike: write less than 100%, like "90%"')


CorrelationText = Annotated[Fraction, PlainValidator(_correlation), written_as("fraction", "90%")]
DelayText = Annotated[Duration | DelayFile, PlainValidator(_delay), written_as("delay", "50ms", "{table: delays.txt}")]


class ConstantDelay(Variant, tag="constant"):
    """The same for every packet."""

    delay_ns: int


class UniformDelay(Variant, tag="uniform"):
    """Uniform within ± jitter around the delay."""

    delay_ns: int
    jitter_ns: int


class NormalDelay(Variant, tag="normal"):
    """Normal; jitter is the standard deviation."""

    delay_ns: int
    jitter_ns: int


class GaussMarkovDelay(Variant, tag="gauss_markov"):
    """Normal; jitter is the standard deviation, and each packet's deviation is correlated with the one before it."""

    correlation_ppb: int
    delay_ns: int
    jitter_ns: int


class ParetoDelay(Variant, tag="pareto"):
    """From delay - jitter on, a tail of shape 3 whose standard deviation is jitter."""

    delay_ns: int
    jitter_ns: int


class DelayTable(Variant, tag="table"):
    """One of the values for each packet, all equally likely: measured delays."""

    delays_ns: tuple[int, ...]


Delay = ConstantDelay | UniformDelay | NormalDelay | GaussMarkovDelay | ParetoDelay | DelayTable


_NORMAL_JITTERS, _PARETO_JITTERS = 4, 10
"""Where emulator/model/src/distribution.rs cuts the distributions."""
Distribution = Literal["uniform", "normal", "pareto"]
"""By which jitter is spread."""


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
    """The nominal delay of the link; of a table the mean, rounded down."""
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
    """The delay below which hardly any packet stays: the smallest one; for a normal distribution three standard
    deviations less than its mean (one packet of 740 is below that).
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


def compile_delay(way: DirectionSettings, at: LinkContext) -> tuple[Delay, int]:
    """The delay, and the longest that a packet can draw, in ns; DescriptionError for a spread that cannot be."""
    written = way.written
    table, jitter = written.delay, written.jitter
    jitter_ns = jitter.ns if jitter is not None else 0
    if written.distribution is not None and not jitter_ns:
        raise at.error(way, "distribution", 'has nothing to spread: write "jitter: 1ms" too', written.distribution)
    correlation_ppb = written.correlation.ppb if written.correlation is not None else 0
    if correlation_ppb and isinstance(table, DelayFile):
        message = "the delays of a table are drawn independently: leave correlation out"
        raise at.error(way, "correlation", message, written.correlation)
    if correlation_ppb and not jitter_ns:
        raise at.error(way, "correlation", 'has nothing to correlate: write "jitter: 1ms" too', written.correlation)
    traced_ns = most(way, "delay")
    if written.reorder and not jitter_ns and traced_ns is None and not isinstance(table, DelayFile):
        raise at.error(way, "reorder", 'a constant delay reorders nothing: write "jitter: 1ms" too', "true")
    if isinstance(table, DelayFile):
        if jitter_ns:
            raise at.error(way, "jitter", "the delays of a table vary already: leave jitter out", jitter)
        drawn = DelayTable(table.delays_ns)
        return drawn, longest_ns(drawn)
    if jitter_ns > at.delay_ns:
        delay = Duration(at.delay_ns)
        message = f'is more than the delay of {delay} on {at.link}: write at most "{delay}"'
        raise at.error(way, "jitter", message, jitter)
    if not jitter_ns:
        return ConstantDelay(at.delay_ns), at.delay_ns if traced_ns is None else traced_ns
    name = written.distribution or "normal"
    if correlation_ppb and name != "normal":
        message = f'{name} delays are independent: write "distribution: normal", or "correlation: 0%"'
        raise at.error(way, "correlation", message, written.correlation)
    spread = _spread(name, at.delay_ns, jitter_ns, correlation_ppb)
    return spread, longest_ns(spread)


def _spread(name: Distribution, delay_ns: int, jitter_ns: int, correlation_ppb: int) -> Delay:
    match name:
        case "normal" if correlation_ppb:
            return GaussMarkovDelay(correlation_ppb, delay_ns, jitter_ns)
        case "uniform":
            return UniformDelay(delay_ns, jitter_ns)
        case "normal":
            return NormalDelay(delay_ns, jitter_ns)
        case "pareto":
            return ParetoDelay(delay_ns, jitter_ns)
        case _:
            assert_never(name)


class DescribedDelay(TypedDict, total=False):
    """Keys of a description that say a delay."""

    delay: Duration
    jitter: Duration
    distribution: Distribution
    reorder: bool
    correlation: Fraction


def described(delay: Delay, reorder: bool) -> DescribedDelay:
    """The keys of a description that say a delay; none for a table, which only a file says."""
    match delay:
        case DelayTable():
            return {}
        case ConstantDelay(delay_ns):
            return {"delay": Duration(delay_ns)}
        case UniformDelay(delay_ns, jitter_ns):
            return _described_spread("uniform", delay_ns, jitter_ns, reorder)
        case NormalDelay(delay_ns, jitter_ns):
            return _described_spread("normal", delay_ns, jitter_ns, reorder)
        case ParetoDelay(delay_ns, jitter_ns):
            return _described_spread("pareto", delay_ns, jitter_ns, reorder)
        case GaussMarkovDelay(correlation_ppb, delay_ns, jitter_ns):
            return {
                **_described_spread("normal", delay_ns, jitter_ns, reorder),
                "correlation": Fraction(correlation_ppb),
            }
        case _:
            assert_never(delay)


def _described_spread(name: Distribution, delay_ns: int, jitter_ns: int, reorder: bool) -> DescribedDelay:
    keys: DescribedDelay = {"delay": Duration(delay_ns), "jitter": Duration(jitter_ns), "distribution": name}
    if reorder:
        keys["reorder"] = True
    return keys


def is_nothing(written: Duration | DelayFile) -> bool:
    """Return whether packets arrive at once, which a network card does too."""
    return isinstance(written, Duration) and not written.ns


def obstacle(direction: Direction, way: DirectionSettings) -> Obstacle | None:
    """netem spreads delays uniformly, and lets packets overtake then."""
    delay = direction.delay
    match delay:
        case DelayTable():
            return "delay", 'netem has no table of delays: write a delay like "50ms"'
        case NormalDelay() | ParetoDelay():
            key = "distribution" if way.written.distribution is not None else "jitter"
            write = 'write "distribution: uniform", "reorder: true"'
            return key, f"netem has no {delay.kind} distribution of its own: {write}"
        case GaussMarkovDelay():
            write = 'leave it out, and write "distribution: uniform", "reorder: true"'
            return "correlation", f"netem's own keeps neither jitter nor correlation: {write}"
        case UniformDelay():
            if not direction.reorder:
                return "jitter", 'netem lets packets overtake under jitter: write "reorder: true"'
            if delay.jitter_ns > INT32:
                return "jitter", 'netem holds 31 bits of ns: write at most "2s"'
            return None
        case ConstantDelay():
            return None
        case _:
            assert_never(delay)
