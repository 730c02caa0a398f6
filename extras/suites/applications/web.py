"""WM, web surfing: sessions of requests and large files in both directions, and a limit for the response time."""

from __future__ import annotations

from fractions import Fraction as Exact

from ewan.extras.suites.application import (
    COMPLETION,
    RESPONSES_IN_TIME,
    Application,
    ApplicationCase,
    ApplicationTraffic,
)
from ewan.extras.suites.steps import LONGEST_DAY_NS, exponential, interval, pareto, percent, reverse_time
from ewan.generator.scenario.data import ScenarioMapping
from ewan.labs.base.units import Duration, parse_volume

WEB_LOAD = Exact("0.9")  # of what each source gets of the bottleneck, by the large files, each way
SESSIONS_APART = "10ms"  # starts of the sessions of one source


def _traffic(case: ApplicationCase) -> ApplicationTraffic:
    length, ends = Duration.parse(case.size("length"), LONGEST_DAY_NS), case.ends
    between = interval(case, parse_volume(case.size("file")), WEB_LOAD, ends.pairs)
    own = {**case.sizes, "interval": str(between), "files": max(1, length.ns // between.ns)}
    streams = case.parameters.streams
    sessions: ScenarioMapping = {"repeat": {"times": streams, "every": SESSIONS_APART}} if case.several_streams else {}
    page, large = pareto(case.size("page"), "page"), pareto(case.size("file"), "file")
    surfing: ScenarioMapping = {"request": "300B", "response": page, "think": exponential("${think}")}
    files: ScenarioMapping = {"count": "${files}", "interval": exponential("${interval}"), "size": large}
    steps: list[ScenarioMapping] = []
    for side, source, sink in (("left", ends.sources, ends.sinks), ("right", ends.sinks, ends.sources)):
        between_ends = {"from": source, "to": sink}
        steps.append({"name": f"surf-{side}", **between_ends, **sessions, "for": "${length}", "requests": surfing})
        steps.append({"name": f"files-{side}", **between_ends, "arrivals": files})
    return ApplicationTraffic(own, (*steps, *reverse_time(case, "${length}")), 2 * length.ns)


APPLICATION = Application(
    word="WM",
    title="web surfing",
    about="Web surfing: big and small transfers in both directions, and a person who waits. Small: at each source N_s "
    "sessions of requests (300 B), responses of Pareto size, thinking in between, on a connection that stays. Big: "
    f"files of Pareto size arrive by Poisson's law and fill {percent(WEB_LOAD)} of each source's share of the "
    "bottleneck. What counts is the response time of the small ones. All sizes and times are ours; the shape of "
    "the law is that of the JGN2 experiments, cut at twenty means.",
    sizes={
        "quick": {"length": "3s", "page": "30kB", "think": "200ms", "file": "1MB"},
        "paper": {"length": "300s", "page": "30kB", "think": "1s", "file": "10MB"},
    },
    traffic=_traffic,
    metrics=("mean response time", "p95 response time", *COMPLETION),
    overview=("mean response time", "p95 response time", RESPONSES_IN_TIME, "mean completion time"),
)
