"""An application's case as the text of a scenario, which a person can read, change and run alone. Pure.

In: an application and what its scenario is made for. Out: YAML with the keys of docs/scenario.md.
"""

from __future__ import annotations

import textwrap
from typing import Any

from generator.scenario.text import dumped
from generator.suites.application import Application, Case, Step, Traffic
from generator.suites.pieces import BACKGROUND, LONGEST_DAY_NS, TAIL, exponential, pareto, percent, whole_seconds
from labs.units import NS_PER_SECOND, Duration, parse_volume, time_for

BACKGROUND_FILE = "100kB"  # mean; with its law as the files of the JGN2 experiments
BACKGROUND_CONGESTION = "cubic"
NETWORK = ("utilisation", "mean queueing delay", "queue loss", "link loss", "total loss", "retransmissions")
"""Metrics that every application's table has after its own."""
WIDTH = 110  # of the lines of `about`


def text(application: Application, case: Case) -> str:
    """The scenario of an application; its runs are its points × congestion controls × seeds."""
    return dumped(_document(application, case, application.traffic(case)))


def _document(application: Application, case: Case, traffic: Traffic) -> dict[str, Any]:
    about = [application.about.format_map(case.sizes), *_background_about(case), *case.ends.notes]
    about += [f"Parameters: {case.parameters.text()}.", *(f"{note}." for note in case.parameters.notes)]
    longest_ns = min(20 * traffic.busy_ns + 60 * NS_PER_SECOND, LONGEST_DAY_NS)
    compared = {"congestion": list(case.congestion)}
    streams = {"streams": case.parameters.streams} if case.parameters.streams > 1 else {}
    return {
        "name": application.scenario,
        "title": f"HSTTS {application.word}, {application.title}",
        "about": "\n".join(textwrap.fill(each, WIDTH) for each in about) + "\n",
        "source": application.source,
        "lab": case.ends.lab,
        "parameters": {"congestion": case.reference, **traffic.own},
        "sweep": [{**point, **compared} for point in traffic.points] or compared,
        "seeds": case.seeds,
        "normalise": {"by": "congestion", "to": case.reference},
        "defaults": {"congestion": "${congestion}", **streams},
        "longest": whole_seconds(longest_ns),
        "steps": [*traffic.steps, *_background(case, traffic.busy_ns)],
        "metrics": [*application.metrics, *NETWORK],
    }


def _background(case: Case, busy_ns: int) -> list[Step]:
    """Web files both ways for half as long again as the load takes where nothing is lost."""
    if case.ends.background is None:
        return []
    share, size = BACKGROUND[case.parameters.background], parse_volume(BACKGROUND_FILE)
    interval = Duration(time_for(size.bytes, int(case.parameters.rate.bps * share)))
    left, right = case.ends.background
    return [
        {
            "name": f"background-{side}",
            "role": "background",
            "from": source,
            "to": sink,
            "congestion": BACKGROUND_CONGESTION,
            "for": whole_seconds(busy_ns * 3 // 2),
            "arrivals": {"interval": exponential(str(interval)), "size": pareto(BACKGROUND_FILE)},
        }
        for side, source, sink in (("left", left, right), ("right", right, left))
    ]


def _background_about(case: Case) -> list[str]:
    """What the scenario's description says of the background; nothing where there is none."""
    if case.ends.background is None:
        return []
    share = percent(BACKGROUND[case.parameters.background])
    return [
        f"Background {case.parameters.background}, which the poster names and does not define: files of Pareto size "
        f"(mean {BACKGROUND_FILE}, shape {TAIL}, cut at twenty means) arrive by Poisson's law, {share} of the "
        f"bottleneck each way, with {BACKGROUND_CONGESTION} whatever is tested."
    ]
