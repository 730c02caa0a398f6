"""What the links of a lab do now, each direction with its rate, queue, drops and lateness.

In: the spinners' millisecond series. Out: sums over a window, and a table of them.
"""

from __future__ import annotations

from typing import Any, Literal

from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.base.units import NS_PER_MS, mean_rate_bps
from ewan.labs.base.units.shown import about
from ewan.labs.link import Direction
from ewan.labs.plan import Link, Plan
from ewan.labs.runtime.base import LabError, LinkControl

WINDOW_MS = 500
ENDED = ("ended by a fault", "no answer")
BARS = " ▁▂▃▄▅▆▇█"
COLUMNS = [
    "link",
    "from → to",
    "rate",
    "of",
    "queue, last half second",
    "worst",
    "lost",
    "queue full",
    "AQM",
    "no room",
    "late at most",
]
UNTOLD: dict[str, Any] = {
    "out_packets": None,
    "queue_course_bytes": [],
    "queue_max_bytes": None,
    "lost_packets": None,
    "queue_full_packets": None,
    "aqm_packets": None,
    "store_full_packets": None,
    "lateness_max_ns": None,
}
"""What a device does not tell, which a spinner does."""
COUNTED = ("out_packets", "came_packets", "dropped_packets", "out_bytes", "came_bytes")
COUNTERS = ["link", "from → to", "packets, it counts", "we count", "it dropped", "bytes, it counts", "we count"]
CAUSES = ("lost", "queue_full", "aqm", "store_full")


def sample(labs: LinkControl, plan: Plan) -> list[dict[str, Any]]:
    """Each direction over the last `WINDOW_MS`."""
    stats = [labs.control(plan.lab, number, {"command": "stats"}) for number in range(len(plan.spinners))]
    serving = {link: number for number, spinner in enumerate(plan.spinners) for link in spinner.links}
    found = []
    for link in plan.links:
        if link.backend == "hardware":
            found += _of_device(labs, plan.lab, link.name)
            continue
        answer = stats[serving[link.name]]
        since_ms, ended = max(0, answer["now_ms"] - WINDOW_MS), answer["links"][link.name]["ended"]
        request = {"command": "series", "link": link.name, "since_ms": since_ms}
        series = labs.control(plan.lab, serving[link.name], request)
        for heading in ("forward", "backward"):
            found.append({"link": link.name, "direction": heading, "ended": ended, **summary(series[heading])})
    return found


def _of_device(labs: LinkControl, lab: str, link: str) -> list[dict[str, Any]]:
    """What a device tells of its own milliseconds; None for what it does not tell."""
    try:
        known = labs.control(lab, link, {"command": "device"})["abilities"]
        counters = labs.control(lab, link, {"command": "counters"})["counters"] if known["counters"] else {}
        series = known["series"] and labs.control(lab, link, {"command": "series", "since_ms": -WINDOW_MS})
    except LabError as error:
        silent = {"link": link, "ended": str(error), "rate_bps": 0, **UNTOLD}
        return [{**silent, "direction": heading} for heading in ("forward", "backward")]
    found = []
    for heading in ("forward", "backward"):
        device = counters.get(heading)
        rate_bps = None if device is None else device["rate_bps"]
        if series:
            sent = series[heading]["out_bytes"]
            rate_bps = mean_rate_bps(sum(sent), max(1, len(sent)) * NS_PER_MS)
        of_link = {"link": link, "direction": heading, "ended": None, "rate_bps": rate_bps, **UNTOLD}
        found.append(of_link if device is None else {**of_link, "device": device})
    return found


def summary(rows: dict[str, list[int]]) -> dict[str, Any]:
    """What a window of milliseconds adds up to; the rate counts what the link's framing counts."""
    length_ms = max(1, len(rows["out_bytes"]))
    course = rows["queue_max_bytes"]
    return {
        "rate_bps": mean_rate_bps(sum(rows["out_bytes"]), length_ms * NS_PER_MS),
        "out_packets": sum(rows["out_packets"]),
        "queue_course_bytes": [max(course[i : i + WINDOW_MS // 20]) for i in range(0, len(course), WINDOW_MS // 20)],
        "queue_max_bytes": max(course, default=0),
        **{f"{cause}_packets": sum(rows[cause]) for cause in CAUSES},
        "lateness_max_ns": max(rows["lateness_max_ns"], default=0),
    }


def view(plan: Plan, found: list[dict[str, Any]]) -> Sheet:
    """The table of all directions of links: rate, queue over the window, drops, lateness."""
    links = {link.name: link for link in plan.links}
    rows = []
    for each in found:
        link = links[each["link"]]
        way: Direction = getattr(link, each["direction"])
        full = way.queue.limit_bytes or max(1, each["queue_max_bytes"] or 0)
        rows.append(
            [
                link.name,
                ends(link, each["direction"]),
                _known(each["rate_bps"], "rate") if each["ended"] is None else ENDED[link.backend == "hardware"],
                about(way.rate_bps, "rate"),
                sparkline(each["queue_course_bytes"], full),
                _known(each["queue_max_bytes"], "size"),
                *(str(each[f"{cause}_packets"] or "") for cause in CAUSES),
                _known(each["lateness_max_ns"], "time"),
            ]
        )
    return grid(f"Links of {plan.lab}", COLUMNS, rows)


def counters(plan: Plan, found: list[dict[str, Any]]) -> Sheet | None:
    """What devices count, beside what our cards behind them count, since the lab came up; None where none counts."""
    links = {link.name: link for link in plan.links}
    rows = [
        [each["link"], ends(links[each["link"]], each["direction"]), *(str(each["device"][key]) for key in COUNTED)]
        for each in found
        if "device" in each
    ]
    return grid(f"Devices of {plan.lab}, since it came up", COUNTERS, rows) if rows else None


def _known(amount: int | None, kind: Literal["size", "time", "rate"]) -> str:
    return "" if amount is None else about(amount, kind)


def ends(link: Link, heading: str) -> str:
    """The neighbours of a link in the order in which packets pass them."""
    return f"{link.a.node} → {link.b.node}" if heading == "forward" else f"{link.b.node} → {link.a.node}"


def sparkline(values: list[int], full: int) -> str:
    """Each value as a bar of eighths of `full`."""
    return "".join(BARS[min(8, -(-8 * value // full))] for value in values)
