"""Shows the present activity of a lab's links: the rate, queue, drops and lateness of each direction.

In: the spinners' millisecond series. Out: sums over a window, and a table of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import UNSET, UnsetType

from ewan.labs.base.codec import Struct
from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.base.units import NS_PER_MS, mean_rate_bps
from ewan.labs.base.units.shown import about
from ewan.labs.hardware.counts import DeviceCount
from ewan.labs.link import Direction
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Link, Plan
from ewan.labs.runtime.base import LabError, LinkControl
from ewan.labs.runtime.requests import (
    CountersRequest,
    DeviceRequest,
    DeviceSeriesRequest,
    LinkSeriesRequest,
    SeriesColumns,
    StatsRequest,
)

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
COUNTED = ("out_packets", "came_packets", "dropped_packets", "out_bytes", "came_bytes")
COUNTERS = ["link", "from → to", "packets, it counts", "we count", "it dropped", "bytes, it counts", "we count"]
HEADINGS: tuple[Heading, ...] = get_args(Heading)


class WatchedDirection(Struct, kw_only=True, omit_defaults=False):
    """A direction of a link over a window. None, or an empty course, where what runs the link does not tell it.

    `ended`: why it does not run, None while it does; `rate_bps` counts what the link's framing counts.
    """

    link: str
    direction: Heading
    ended: str | None
    rate_bps: int | None
    out_packets: int | None = None
    queue_course_bytes: tuple[int, ...] = ()
    queue_max_bytes: int | None = None
    lost_packets: int | None = None
    queue_full_packets: int | None = None
    aqm_packets: int | None = None
    store_full_packets: int | None = None
    lateness_max_ns: int | None = None
    device: DeviceCount | UnsetType = UNSET
    """The counters of a device since the lab came up."""

    @property
    def dropped_packets(self) -> tuple[int | None, ...]:
        """By cause, in the order of the table."""
        return self.lost_packets, self.queue_full_packets, self.aqm_packets, self.store_full_packets


def sample(labs: LinkControl, plan: Plan) -> list[WatchedDirection]:
    """Each direction over the last `WINDOW_MS`."""
    stats = [labs.control(plan.lab, number, StatsRequest()) for number in range(len(plan.spinners))]
    serving = {link: number for number, spinner in enumerate(plan.spinners) for link in spinner.links}
    found = []
    for link in plan.links:
        if link.backend == "hardware":
            found += _of_device(labs, plan.lab, link.name)
            continue
        answer = stats[serving[link.name]]
        request = LinkSeriesRequest(link.name, max(0, answer.now_ms - WINDOW_MS))
        series = labs.control(plan.lab, serving[link.name], request)
        ended = answer.links[link.name].ended
        found.append(summary(link.name, "forward", ended, series.forward))
        found.append(summary(link.name, "backward", ended, series.backward))
    return found


def _of_device(labs: LinkControl, lab: str, link: str) -> list[WatchedDirection]:
    """The milliseconds that a device reports."""
    try:
        known = labs.control(lab, link, DeviceRequest()).abilities
        counters = labs.control(lab, link, CountersRequest()).counters if known.counters else {}
        series = labs.control(lab, link, DeviceSeriesRequest(link, -WINDOW_MS)) if known.series else None
    except LabError as error:
        return [WatchedDirection(link=link, direction=each, ended=str(error), rate_bps=0) for each in HEADINGS]
    found = []
    for heading in HEADINGS:
        device = counters.get(heading)
        rate_bps = None if device is None else device.rate_bps
        if series is not None:
            sent = (series.forward if heading == "forward" else series.backward).out_bytes
            rate_bps = mean_rate_bps(sum(sent), max(1, len(sent)) * NS_PER_MS)
        counted = UNSET if device is None else device
        found.append(WatchedDirection(link=link, direction=heading, ended=None, rate_bps=rate_bps, device=counted))
    return found


def summary(link: str, heading: Heading, ended: str | None, rows: SeriesColumns) -> WatchedDirection:
    """The sums over a window of milliseconds."""
    course, step = rows.queue_max_bytes, WINDOW_MS // 20
    return WatchedDirection(
        link=link,
        direction=heading,
        ended=ended,
        rate_bps=mean_rate_bps(sum(rows.out_bytes), max(1, len(rows.out_bytes)) * NS_PER_MS),
        out_packets=sum(rows.out_packets),
        queue_course_bytes=tuple(max(course[i : i + step]) for i in range(0, len(course), step)),
        queue_max_bytes=max(course, default=0),
        lost_packets=sum(rows.lost),
        queue_full_packets=sum(rows.queue_full),
        aqm_packets=sum(rows.aqm),
        store_full_packets=sum(rows.store_full),
        lateness_max_ns=max(rows.lateness_max_ns, default=0),
    )


def view(plan: Plan, found: Sequence[WatchedDirection]) -> Sheet:
    """The table of all directions of links: rate, queue over the window, drops, lateness."""
    links = {link.name: link for link in plan.links}
    rows = []
    for each in found:
        link = links[each.link]
        way: Direction = getattr(link, each.direction)
        full = way.queue.limit_bytes or max(1, each.queue_max_bytes or 0)
        rows.append(
            [
                link.name,
                ends(link, each.direction),
                _known(each.rate_bps, "rate") if each.ended is None else ENDED[link.backend == "hardware"],
                about(way.rate_bps, "rate"),
                sparkline(each.queue_course_bytes, full),
                _known(each.queue_max_bytes, "size"),
                *(str(count or "") for count in each.dropped_packets),
                _known(each.lateness_max_ns, "time"),
            ]
        )
    return grid(f"Links of {plan.lab}", COLUMNS, rows)


def counters(plan: Plan, found: Sequence[WatchedDirection]) -> Sheet | None:
    """A table of the counters of devices, beside those of our cards behind them, since the lab came up; None if no
    device counts."""
    links = {link.name: link for link in plan.links}
    rows = [
        [each.link, ends(links[each.link], each.direction), *(str(getattr(each.device, key)) for key in COUNTED)]
        for each in found
        if each.device is not UNSET
    ]
    return grid(f"Devices of {plan.lab}, since it came up", COUNTERS, rows) if rows else None


def _known(amount: int | None, kind: Literal["size", "time", "rate"]) -> str:
    return "" if amount is None else about(amount, kind)


def ends(link: Link, heading: str) -> str:
    """The neighbours of a link in the order in which packets pass them."""
    return f"{link.a.node} → {link.b.node}" if heading == "forward" else f"{link.b.node} → {link.a.node}"


def sparkline(values: Sequence[int], full: int) -> str:
    """Each value as a bar of eighths of `full`."""
    return "".join(BARS[min(8, -(-8 * value // full))] for value in values)
