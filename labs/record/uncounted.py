"""Traffic over the bottleneck that belongs to no flow that is counted, as programs of steps send it, for people.

In: an experiment's summary (analysis/uncounted.py finds the share). Out: lines, and which values to mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ewan.labs.base.units.shown import ARROWS, written


class UnexplainedShare(TypedDict):
    """A direction of a link, and which share of the bytes that it carried no flow explains."""

    link: str
    direction: str
    share: float


MARK = "⚠"
"""Stands after shares and fairness of a point where traffic was not counted."""
AMONG_FLOWS = ("share", "fairness per flow", "fairness per source", "convergence time")
"""Metrics that compare flows: whatever is no flow is missing in them."""
_MOST_NAMED = 8


def is_marked(point: Mapping[str, Any], quantity: str) -> bool:
    """Whether a point's value of a quantity lacks traffic that was not counted."""
    return bool(point.get("uncounted")) and quantity.partition(" of ")[0] in AMONG_FLOWS


def of_summary(summary: Mapping[str, Any]) -> list[str]:
    """`⚠ other traffic took 48 % of core →: shares and fairness are those of the counted flows (runs 1, 2)`."""
    runs = [run for run in summary["runs"] if run.get("uncounted")]
    if not runs:
        return []
    most = max((run["uncounted"] for run in runs), key=lambda each: each["share"])
    link = f"{most['link']} {ARROWS.get(most['direction'], most['direction'])}"
    named = ", ".join(str(run["number"]) for run in runs[:_MOST_NAMED]) + " …" * (len(runs) > _MOST_NAMED)
    several = len(summary["runs"]) > 1
    took = f"took {'up to ' * (len(runs) > 1)}{written(most['share'], 'share', 2)} of what {link} carried"
    where = f" (run{'s' * (len(runs) > 1)} {named})" * several
    return [f"{MARK} other traffic {took}{where}: shares and fairness are those of the flows that are counted"]
