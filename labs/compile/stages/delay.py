"""The delay line of a direction: constant, spread by jitter, or from a table; and what it was written as."""

from __future__ import annotations

from typing import Any, Literal, assert_never

from ewan.labs.base.units import Duration, Fraction
from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages.context import INT32, LinkContext, Obstacle
from ewan.labs.compile.stages.trace import most
from ewan.labs.spec import values
from ewan.labs.stages import (
    ConstantDelay,
    Delay,
    DelayTable,
    GaussMarkovDelay,
    NormalDelay,
    ParetoDelay,
    UniformDelay,
)
from ewan.labs.stages.delay import longest_ns


def compile_delay(way: Settings, at: LinkContext) -> tuple[Delay, int]:
    """The delay, and the longest that a packet can draw, in ns; DescriptionError for a spread that cannot be."""
    written = way.written
    table, jitter = written.delay, written.jitter
    jitter_ns = jitter.ns if jitter is not None else 0
    if written.distribution is not None and not jitter_ns:
        raise at.error(way, "distribution", 'has nothing to spread: write "jitter: 1ms" too', written.distribution)
    correlation_ppb = written.correlation.ppb if written.correlation is not None else 0
    if correlation_ppb and isinstance(table, values.DelayTable):
        message = "the delays of a table are drawn independently: leave correlation out"
        raise at.error(way, "correlation", message, written.correlation)
    if correlation_ppb and not jitter_ns:
        raise at.error(way, "correlation", 'has nothing to correlate: write "jitter: 1ms" too', written.correlation)
    traced_ns = most(way, "delay")
    if written.reorder and not jitter_ns and traced_ns is None and not isinstance(table, values.DelayTable):
        raise at.error(way, "reorder", 'a constant delay reorders nothing: write "jitter: 1ms" too', "true")
    if isinstance(table, values.DelayTable):
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


def _spread(name: Literal["uniform", "normal", "pareto"], delay_ns: int, jitter_ns: int, correlation_ppb: int) -> Delay:
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


def described(delay: Delay, reorder: bool) -> dict[str, Any]:
    """The keys of a description that say a delay; none for a table, which only a file says."""
    match delay:
        case DelayTable():
            return {}
        case ConstantDelay(delay_ns):
            return {"delay": Duration(delay_ns)}
        case UniformDelay(delay_ns, jitter_ns) | NormalDelay(delay_ns, jitter_ns) | ParetoDelay(delay_ns, jitter_ns):
            keys = {"delay": Duration(delay_ns), "jitter": Duration(jitter_ns), "distribution": delay.kind}
            return keys | ({"reorder": True} if reorder else {})
        case GaussMarkovDelay(correlation_ppb, delay_ns, jitter_ns):
            return described(NormalDelay(delay_ns, jitter_ns), reorder) | {"correlation": Fraction(correlation_ppb)}
        case _:
            assert_never(delay)


def obstacle(delay: Delay, reorder: bool, way: Settings) -> Obstacle | None:
    """netem spreads delays uniformly, and lets packets overtake then."""
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
            if not reorder:
                return "jitter", 'netem lets packets overtake under jitter: write "reorder: true"'
            if delay.jitter_ns > INT32:
                return "jitter", 'netem holds 31 bits of ns: write at most "2s"'
            return None
        case ConstantDelay():
            return None
        case _:
            assert_never(delay)
