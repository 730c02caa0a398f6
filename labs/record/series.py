"""The vocabulary of what figures draw beside metrics: series over time, and samples that have a distribution.

In: nothing. Out: `SERIES` and `SAMPLES`, by name, each with its unit, its meaning and the table that it comes from.
A series that is a column of a table is defined by its entry; the analysis computes the others by their names
(analysis/figures/series.py and samples.py). Figures (labs/record/figures.py) and docs/reference/metrics.md look them up
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ewan.labs.base.units import NS_PER_MS, NS_PER_US
from ewan.labs.record.columns import COLUMNS

SeriesUnit = Literal["ns", "bit/s", "ratio", "share", "count", "segments", "bytes", "packets"]
"""The unit of a value. A share is a ratio that is shown as a percentage."""

Whose = Literal["flow", "link", "run", "command"]
"""The parts of a run that have a series each: its flows, the directions of its links, itself, or its commands."""

Together = Literal["sum", "mean"]


@dataclass(frozen=True, slots=True)
class Series:
    """A quantity over time. `meaning` is one sentence."""

    name: str
    unit: SeriesUnit
    meaning: str
    table: str
    whose: Whose
    column: str = ""
    """The column of the table, sampled at its `time_ns`; empty: the analysis computes the series by its name."""
    without: str = ""
    """A column that is true where a row is no sample."""
    together: Together = "mean"
    """The function that combines several flows."""
    zero: bool = True
    """Its axis begins at zero: it is of a whole, or its size against nothing says something."""
    of_one: bool = False
    """No value of it is above one."""
    times: int = 1
    """A value of the column is so many of the unit."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of which a run has many. `meaning` is one sentence: what one value is."""

    name: str
    unit: SeriesUnit
    meaning: str
    table: str
    column: str = ""
    """The column of the table, null if there is no value; empty: the analysis computes the samples by their name."""
    without: str = ""
    """A column that is true where a row is no sample."""
    whose: Whose = "flow"
    """By what samples are selected with `of STEP`: the flows that they are of, or the commands."""


_SERIES = (
    Series(
        "goodput",
        "bit/s",
        "payload that arrived, copies too; in order where the generator does not tell arrivals",
        "goodput",
        "flow",
        together="sum",
    ),
    Series("delivered goodput", "bit/s", "payload delivered in order", "goodput", "flow", together="sum"),
    Series(
        "share", "share", "of the payload that arrived for all flows in a window, what arrived for these", "goodput",
        "flow", together="sum", of_one=True,
    ),
    Series("fairness", "ratio", "Jain's index of the load flows active throughout a window", "goodput", "run",
           zero=False, of_one=True),
    Series("cwnd", "segments", "congestion window", "series", "flow", "cwnd_segments"),
    Series("ssthresh", "segments", "slow-start threshold", "series", "flow", "ssthresh_segments"),
    Series("rtt", "ns", "smoothed RTT of the sender (RFC 6298)", "series", "flow", "srtt_ns"),
    Series("in flight", "segments", "sent, and neither acknowledged nor taken for lost", "series", "flow",
           "in_flight_segments", together="sum"),
    Series("delivery rate", "bit/s", "the kernel's last estimate", "series", "flow", "delivery_rate_bps",
           together="sum"),
    Series("pacing rate", "bit/s", "at which a sender may send at most", "series", "flow", "pacing_rate_bps",
           together="sum"),
    Series("target rate", "bit/s", "what the rate control of a media source wants of its encoder", "media", "flow",
           "target_bps", together="sum"),
    Series("encoder rate", "bit/s", "what the encoder of a media source makes on average", "media", "flow",
           "encoder_bps", together="sum"),
    Series("media rtt", "ns", "smoothed RTT of a media source, without the time that reports waited for", "media",
           "flow", "srtt_ns"),
    Series("estimated queue", "ns", "what the rate control of a media source takes for the wait in the network",
           "media", "flow", "queue_delay_ns"),
    Series("frame delay", "ns", "from a frame's capture to its last packet, by its capture", "frames", "flow"),
    Series("queue", "ns", "bytes that wait at the link, as the time that its rate takes for them", "links", "link"),
    Series("queue bytes", "bytes", "bytes that wait at the link", "links", "link", "queue_bytes"),
    Series("queue packets", "packets", "packets that wait at the link", "links", "link", "queue_packets"),
    Series("sent rate", "bit/s", "what the link sent, framing counted", "links", "link", together="sum"),
    Series("device rate", "bit/s", "what left a device outside: as its readout tells, and as our cards behind it count "
           "the same, framing counted", "device", "link"),
    Series("utilisation", "share", "what the link sent, framing counted, of what its rate carries", "links", "link",
           of_one=True),
    Series("ping rtt", "ns", "of an echo request, as ping prints it", "pings", "command", "rtt_ns",
           without="duplicate"),
    Series("one-way delay", "ns", "of captured packets with payload, from the source's interface to the sink's, when "
           "they were sent", "packets", "flow"),
    Series("drops", "packets", "packets that the link's queue dropped in a window", "links", "link", together="sum"),
)  # fmt: skip

_SAMPLES = (
    Samples("completion time", "ns", "of a transfer, from its scheduled start to its last byte", "flows"),
    Samples("response time", "ns", "from a request's first byte to its response's last", "exchanges"),
    Samples("iteration time", "ns", "of a rank: computing and exchanging messages once", "exchanges"),
    Samples("flow goodput", "bit/s", "of a flow: payload received per time of it", "flows", "goodput_bps"),
    Samples("rtt", "ns", "smoothed RTT of a sender (RFC 6298), at a sample", "series", "srtt_ns"),
    Samples("cwnd", "segments", "congestion window, at a sample", "series", "cwnd_segments"),
    Samples("queueing delay", "ns", "at the bottleneck: bytes that wait, as the time that its rate takes for them",
            "links", whose="link"),
    Samples("ping rtt", "ns", "of an echo request, as ping prints it", "pings", "rtt_ns", "duplicate", "command"),
    Samples("one-way delay", "ns", "of a captured packet with payload, from the source's interface to the sink's",
            "packets"),
    Samples("packet gap", "ns", "from a captured packet with payload to the next of its connection, at the sink",
            "packets"),
    Samples("frame delay", "ns", "from a frame's capture to its last packet, of those that came whole", "frames"),
    Samples("start lateness", "ns", "from a flow's scheduled start to its first system call", "flows"),
    Samples("udp delay", "ns", "one-way delay that half of a UDP flow's packets did not exceed", "flows"),
    Samples("udp jitter", "ns", "of a UDP flow (RFC 3550, section 6.4.1)", "flows"),
)  # fmt: skip

_UNITS: dict[str, tuple[SeriesUnit, int]] = {
    "ns": ("ns", 1),
    "us": ("ns", NS_PER_US),
    "ms": ("ns", NS_PER_MS),
    "bps": ("bit/s", 1),
    "bytes": ("bytes", 1),
    "segments": ("segments", 1),
    "packets": ("packets", 1),
    "gain": ("ratio", 1),
    "alpha": ("ratio", 1),
}
"""By the last part of a column's name: the unit of a series of it."""

SERIES: dict[str, Series] = {each.name: each for each in _SERIES}
SAMPLES: dict[str, Samples] = {each.name: each for each in _SAMPLES}


def series_named(name: str) -> Series | None:
    """The entry of a series, or one made for a variable of a congestion control, like `cc.mode`; None for others."""
    table = COLUMNS["series"]
    if name in SERIES or not name.startswith(table.prefix) or name == table.prefix:
        return SERIES.get(name)
    unit, times = _UNITS.get(re.split(r"[_.]", name)[-1], ("count", 1))
    known = table.more.get(name)
    meaning = known.meaning if known is not None else "a variable of the sender's congestion control"
    return Series(name, unit, meaning, "series", "flow", name, zero=False, times=times)
