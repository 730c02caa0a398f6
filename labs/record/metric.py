"""The definition of a metric: its name, unit and meaning, the way its values are judged, and the way tables and figures
treat it.

In: nothing. Out: `Metric`, `MetricGroup`. The metrics that there are stand in labs/record/metrics.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Unit = Literal["ns", "bit/s", "ratio", "share", "count"]
"""The unit in which a value is stored. A share is a ratio that is shown as a percentage."""

StepKind = Literal["requests", "messages", "udp", "media", "run"]

Better = Literal["more", "less"]
"""The direction in which a value improves."""


class MetricGroup(StrEnum):
    """The tables of the report, by their titles, in their order."""

    COMPLETION = "Completion times of transfers"
    SIZES = "Completion times by size"
    EXCHANGES = "Responses and iterations"
    GOODPUT = "Goodput and fairness"
    DYNAMICS = "Shares, convergence and other flows"
    QUEUE = "Queueing delay, marks and timeouts"
    RTT = "Round-trip times of senders"
    UDP = "UDP"
    MEDIA = "Media"
    PING = "Ping"
    COUNTED = "Packets of flows at the bottleneck"
    PACKETS = "Captured packets"
    NETWORK = "Bottleneck, losses and starts"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a run.

    `name` is its key in scenarios and summaries. `meaning` is one sentence, with its source where there is one.
    """

    name: str
    unit: Unit
    meaning: str
    group: MetricGroup
    step: StepKind | None = None
    """The kind of step without which no run has it; None: any run may have it."""
    usual: bool = False
    """The terminal's table shows it where the scenario names no metrics."""
    rank: int | None = None
    """Its place among the metrics that figures and `ewan exp list` choose from where the scenario names none; None:
    they do not choose it."""
    bar: str = ""
    """Its name below a bar of ratios, beside others of its group; empty: it is drawn where no metric of a group with
    such names is there."""
    normalised: bool = True
    """Its ratio to that of a reference says something."""
    comparable: bool = False
    """Two single runs may be compared by the relative difference of its values: it has a scale of its own."""
    emulated: bool = False
    """It is of the load's bottleneck, and known only where that is an emulated link."""
    commands: bool = False
    """It is of what commands (`run:`) measured, not of flows: of all of them, of a step's or of a node's."""
    captured: bool = False
    """It is of packets that the scenario captures (`capture:`) at the flows' sources and sinks."""
    counted: bool = False
    """It is of the flows' own packets at the bottleneck, where links count flows (`count_flows`)."""
    selectable: bool = True
    """It can be of other flows than the load's: `NAME of STEP`."""
    better: Better | None = None
    """None: neither is better in itself."""
    most: float | None = None
    """No value is more; None: of a share 1, of others anything."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Between what its values can be."""
        most = 1.0 if self.unit == "share" else math.inf
        return 0.0, self.most if self.most is not None else most
