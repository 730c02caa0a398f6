"""summary.json as a type: what analysis writes of an experiment, and everybody else reads.

In: an experiment's directory. Out: the document, whose keys and values are checked; or DocumentError. Keys that another
version writes beside them are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from ewan.labs.base import documents
from ewan.labs.base.codec import Document, Struct, field
from ewan.labs.record.scenario_requests import Reference, Values

FORMAT = "ewan-summary/1"
FILE = "summary.json"
MOST_BYTES = 1 << 30

Number = int | float
"""A number that is an integer in JSON stays one."""


class Part(Struct, forbid_unknown_fields=False):
    """A part of the document."""


class LinkDirection(Part):
    """One direction of a link."""

    link: str
    direction: str


class LinkUse(LinkDirection):
    """The activity of one direction of a link while load flows were active."""

    rate_bps: int
    """The mean."""
    utilisation: float
    queueing_ns: float | None
    """None: no packet left its queue."""
    queue_loss: float | None
    """None, as of the next two: no packet came."""
    link_loss: float | None
    total_loss: float | None
    sent_bytes: int
    dropped_packets: int
    lost_packets: int


class UnexplainedShare(LinkDirection):
    """A direction of a link, and which share of the bytes that it carried no flow explains."""

    share: float


class SeenDisturbance(Part):
    """The disturbances of a run (labs/record/disturbances.py)."""

    begin_ns: int
    end_ns: int
    kind: str
    where: str
    marks: bool
    words: str


class RunDisturbances(Part):
    """The overlap of a run's load with the disturbances of its links. `seconds`: those after T0 in which links left
    their tolerance. `seen`: what there was, but for `left_out` of it."""

    watched_ns: int
    seconds: tuple[int, ...]
    touched_bytes: int
    delivered_bytes: int
    share: float | None
    seen: tuple[SeenDisturbance, ...]
    left_out: int


class AllDisturbances(Part):
    """The same of all runs that were watched. `runs`: the numbers of those whose links left their tolerance."""

    watched_runs: int
    watched_ns: int
    runs: tuple[int, ...]
    seconds: int
    touched_bytes: int
    delivered_bytes: int
    share: float | None


class MetricValue(Part):
    """A metric of a run, in `unit`."""

    value: Number | None
    unit: str


class RunSummary(Part):
    """A run with its metrics by their names. `beyond`: those that show more than the links carry. `disturbed`: None,
    and not written: it was not watched. `dropped`: by hosts and routers, by node and counter."""

    number: int
    parameters: Values
    seed: int
    status: str
    metrics: dict[str, MetricValue]
    beyond: tuple[str, ...]
    steps: dict[str, dict[str, MetricValue]]
    bottleneck: LinkDirection | None
    links: tuple[LinkUse, ...]
    disturbed: RunDisturbances | None = None
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    uncounted: UnexplainedShare | None = None


class Mean(Part):
    """A metric of a point: its mean with the bounds of its confidence interval and their kind, the deviation of the
    sample, and how many more runs a narrow interval needs."""

    mean: Number | None
    low: Number | None
    high: Number | None
    kind: str | None
    deviation: Number | None
    n: int
    unit: str
    more_seeds: int | None


class Ratio(Part):
    """A metric of a point by that of the reference."""

    ratio: Number | None
    low: Number | None
    high: Number | None
    n: int
    kind: str | None


class PointSummary(Part, omit_defaults=False):
    """The runs of one set of parameters. `beyond`: metrics that show more than the links carry, with the runs in which
    they do; `uncounted`: runs with traffic that belongs to no flow."""

    parameters: Values
    seeds: int
    runs: tuple[int, ...]
    complete: bool
    metrics: dict[str, Mean]
    beyond: dict[str, tuple[int, ...]] = field(default_factory=dict)
    steps: dict[str, dict[str, Mean]] = field(default_factory=dict)
    normalised: dict[str, Ratio] = field(default_factory=dict)
    uncounted: tuple[int, ...] = ()


class DifferenceRow(TypedDict):
    """A difference with its interval, its test, p by itself and by Holm's correction, an effect size, and the outcome
    in a word: what rows of comparisons end with."""

    difference: Number
    low: Number | None
    high: Number | None
    kind: str | None
    n: int
    test: str | None
    p: Number | None
    effect: str | None
    size: Number | None
    p_holm: Number | None
    outcome: str


class ComparisonRow(DifferenceRow):
    """A metric at a point of the parameters against that where the parameter `by` is `to`."""

    by: str
    to: str | int
    value: str | int
    parameters: Values
    metric: str
    harm: bool
    here: Number
    reference: Number
    unit: str
    better: str | None


class PublishedBeside(Part):
    """A published value with the measured one of a point; `here` is None without one. `difference`: as a share of the
    published one, of what is itself a difference in points."""

    source: str
    when: Values
    than: Values | None
    normalised: bool
    note: str
    parameters: Values
    metric: str
    paper: Number
    here: Number | None
    low: Number | None
    high: Number | None
    unit: str
    difference: Number | None


class Summary(Document, tag=FORMAT, forbid_unknown_fields=False, kw_only=True):
    """summary.json. `disturbed`: None, and not written: no run was watched."""

    status: str
    confidence: float
    normalise: Reference | None
    runs: tuple[RunSummary, ...]
    points: tuple[PointSummary, ...]
    disturbed: AllDisturbances | None = None
    comparisons: tuple[ComparisonRow, ...]
    beside: tuple[PublishedBeside, ...]


def names(points: Iterable[PointSummary]) -> list[str]:
    """All quantities that points have, as the first point that has one orders it."""
    return list(dict.fromkeys(name for point in points for name in point.metrics))


def read(directory: Path) -> Summary:
    """The summary in an experiment's directory; DocumentError for any other content, OSError where there is no file."""
    return documents.read(Summary, directory / FILE, MOST_BYTES)
