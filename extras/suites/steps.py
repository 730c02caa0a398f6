"""The common part of applications of HSTTS: transfers of a volume, laws of sizes, and their durations. Pure.

In: a case. Out: steps of a scenario as plain data, times in nanoseconds."""

from __future__ import annotations

from fractions import Fraction as Exact

from ewan.extras.suites import background
from ewan.extras.suites.application import ApplicationCase
from ewan.extras.suites.background import TAIL
from ewan.generator.scenario.data import ScenarioMapping
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_DAY, NS_PER_SECOND, Duration, Size, parse_volume, time_for

LARGEST = 20
"""The largest draw, in means: an unbounded tail would be one file that outlasts all else."""
LONGEST_DAY_NS = NS_PER_DAY
_SLOWEST_RTT = "200ms"  # of the poster's mix


def transfer(case: ApplicationCase, kind: str, *, apart: bool = True) -> ScenarioMapping:
    """Each source sends the volume to its sink; `apart`: with `${apart}` between two starts."""
    offset = {"offset": "${apart}"} if apart else {}
    ends = {"from": case.ends.sources, "to": case.ends.sinks}
    return {"name": "forward", **ends, **offset, kind: {"volume": "${volume}"}}


def reverse_volume(case: ApplicationCase, *, apart: bool = True) -> list[ScenarioMapping]:
    """The reverse pairs send the volume too, with the same starts."""
    offset = {"offset": "${apart}"} if apart else {}
    return [{**each, **offset, "bulk": {"volume": "${volume}"}} for each in _reverse(case)]


def reverse_time(case: ApplicationCase, length: str) -> list[ScenarioMapping]:
    """The reverse pairs send all the time."""
    return [{**each, "streams": 1, "for": length, "bulk": {}} for each in _reverse(case)]


def _reverse(case: ApplicationCase) -> list[ScenarioMapping]:
    """The step of the reverse pairs, without its traffic; empty without such pairs."""
    if case.ends.reverse is None:
        return []
    source, sink = case.ends.reverse
    return [{"name": "reverse", "role": "reverse", "from": source, "to": sink}]


def exponential(mean: str) -> ScenarioMapping:
    """The law of times between arrivals by Poisson."""
    return {"exponential": {"mean": mean}}


def pareto(mean: str, parameter: str | None = None) -> ScenarioMapping:
    """The law, its mean written as the scenario's parameter if it is one, cut at LARGEST means."""
    most = Size(LARGEST * parse_volume(mean).bytes)
    return {"pareto": {"mean": mean if parameter is None else f"${{{parameter}}}", "shape": TAIL, "most": str(most)}}


def interval(case: ApplicationCase, size: Size, share: Exact, sources: int) -> Duration:
    """The interval between arrivals of files at a source so that they fill `share` of its part of the bottleneck."""
    rate = Exact(case.parameters.rate.bps, sources)
    if case.parameters.access is not None:
        rate = min(rate, Exact(case.parameters.access.bps))
    return Duration(round(size.bytes * BITS_PER_BYTE * NS_PER_SECOND / (rate * share)))


def drain_ns(case: ApplicationCase, sources: int) -> int:
    """The time (ns) until the volumes of all sources are through the bottleneck, beside the background."""
    parameters, size = case.parameters, parse_volume(case.size("volume")).bytes
    free = 1 - background.share(parameters.background)
    shared = time_for(size * sources, int(parameters.rate.bps * free))
    alone = 0 if parameters.access is None else time_for(size, parameters.access.bps)
    return max(shared, alone) + 10 * rtt_ns(case)


def staggered_ns(case: ApplicationCase) -> int:
    """The time (ns) from the first source's start to the last one's."""
    return Duration.parse(case.size("apart"), LONGEST_DAY_NS).ns * (case.ends.pairs - 1)


def rtt_ns(case: ApplicationCase) -> int:
    """The largest base RTT."""
    text = _SLOWEST_RTT if case.parameters.rtt == "Mix" else case.parameters.rtt
    return Duration.parse(text, 2 * Duration.LONGEST).ns


def whole_seconds(time_ns: int) -> str:
    """A duration as text, rounded up."""
    return f"{-(-time_ns // NS_PER_SECOND)}s"


def percent(share: Exact) -> str:
    """`30 %`."""
    return f"{float(share * 100):g} %"
