"""summary.json as a type: what analysis writes of an experiment, and everybody else reads.

In: an experiment's directory. Out: the document, of which all keys that are used by others than analysis are checked;
or DocumentError.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from ewan.labs.base import documents

FORMAT = "ewan-summary/1"
FILE = "summary.json"
MOST_BYTES = 1 << 30


class MetricValue(TypedDict):
    """A metric of a run, in `unit`."""

    value: float | None


class RunSummary(TypedDict):
    """A run with its metrics by their names."""

    number: int
    status: str
    metrics: dict[str, MetricValue]


class Mean(TypedDict):
    """A metric of a point: its mean, with the bounds of its confidence interval."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    unit: str


class Ratio(TypedDict):
    """A metric of a point by that of the reference."""

    ratio: float | None
    low: float | None
    high: float | None


class Point(TypedDict):
    """The runs of one set of parameters."""

    parameters: dict[str, str | int]
    seeds: int
    runs: list[int]
    complete: bool
    metrics: dict[str, Mean]
    normalised: dict[str, Ratio]
    beyond: NotRequired[dict[str, list[int]]]
    uncounted: NotRequired[list[int]]
    steps: NotRequired[dict[str, dict[str, Mean]]]


class Summary(TypedDict):
    """summary.json."""

    format: Literal["ewan-summary/1"]
    status: str
    points: list[Point]
    runs: list[RunSummary]
    beside: list[dict[str, Any]]


def read(directory: Path) -> dict[str, Any]:
    """The summary in an experiment's directory; DocumentError for what is none, OSError where there is no file."""
    return documents.read_open(Summary, directory / FILE, MOST_BYTES)
