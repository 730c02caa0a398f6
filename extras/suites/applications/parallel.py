"""PA, distributed parallel application: messages between ranks on both sides, each pattern in runs of its own."""

from __future__ import annotations

from ewan.extras.suites.application import Application, ApplicationCase, ApplicationTraffic, Values
from ewan.extras.suites.steps import reverse_time, rtt_ns, whole_seconds
from ewan.generator.scenario.data import ScenarioMapping
from ewan.labs.base.units import Duration, parse_volume, time_for

NO_SIZE = "null"
"""The size of a barrier: its messages have one byte, and a scenario has no key for it."""
PATTERNS: tuple[dict[str, str], ...] = (
    {"pattern": "all-to-all", "size": "16kB"},
    {"pattern": "neighbour-exchange", "size": "64kB"},
    {"pattern": "barrier", "size": NO_SIZE},
)


def _traffic(case: ApplicationCase) -> ApplicationTraffic:
    ranks, compute = len(case.ends.ranks.split(",")), Duration.parse(case.size("compute"))
    busiest_ns = 0
    for each in PATTERNS:
        size = 1 if each["size"] == NO_SIZE else parse_volume(each["size"]).bytes
        share = time_for(size * _crossing(each["pattern"], ranks), case.parameters.rate.bps)
        busiest_ns = max(busiest_ns, int(case.size("iterations")) * (share + compute.ns + 2 * rtt_ns(case)))
    messages = {key: f"${{{key}}}" for key in ("pattern", "size", "iterations", "compute")}
    job: ScenarioMapping = {"name": "job", "ranks": case.ends.ranks, "messages": messages}
    own: Values = {**case.sizes, **PATTERNS[0]}
    return ApplicationTraffic(own, (job, *reverse_time(case, whole_seconds(busiest_ns))), busiest_ns, PATTERNS)


def _crossing(pattern: str, ranks: int) -> int:
    """Messages of an iteration that cross the bottleneck one way, when every other rank is on the other side."""
    return (ranks // 2) * (ranks - ranks // 2) if pattern == "all-to-all" else ranks


APPLICATION = Application(
    word="PA",
    title="distributed parallel application",
    about="Message passing (MPI) between ranks on both sides, small messages in both directions, each rank on a node "
    "of its own; neighbours in rank are on different sides. All to all, exchange with both neighbours, and barriers, "
    "each in runs of its own. The sizes are ours. R adds pairs that send from right to left meanwhile.",
    sizes={"quick": {"compute": "2ms", "iterations": 20}, "paper": {"compute": "2ms", "iterations": 1000}},
    traffic=_traffic,
    metrics=("mean iteration time", "mean completion time", "max completion time"),
    overview=("mean iteration time", "mean completion time"),
    defaults={"cg": "1.0"},  # of the poster's examples
    streams=False,  # two ranks have one connection
)
