"""Traffic over the bottleneck that belongs to no flow that is counted, as programs of steps send it, for people.

In: the runs of an experiment's summary (analysis/uncounted_traffic.py finds the share). Out: lines, and which
values to mark.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewan.labs.base.units.shown import ARROWS, written
from ewan.labs.record.summary import PointSummary, RunSummary

MARK = "⚠"
"""Stands after shares and fairness of a point where traffic was not counted."""
AMONG_FLOWS = ("share", "fairness per flow", "fairness per source", "convergence time")
"""Metrics that compare flows: whatever is no flow is missing in them."""
_MOST_NAMED = 8


def is_marked(point: PointSummary, quantity: str) -> bool:
    """Return whether a point's value of a quantity lacks traffic that was not counted."""
    return bool(point.uncounted) and quantity.partition(" of ")[0] in AMONG_FLOWS


def of_runs(runs: Sequence[RunSummary]) -> list[str]:
    """`⚠ other traffic took 48 % of core →: shares and fairness are those of the counted flows (runs 1, 2)`."""
    found = {run.number: run.uncounted for run in runs if run.uncounted is not None}
    if not found:
        return []
    most = max(found.values(), key=lambda each: each.share)
    link = f"{most.link} {ARROWS.get(most.direction, most.direction)}"
    named = ", ".join(map(str, list(found)[:_MOST_NAMED])) + " …" * (len(found) > _MOST_NAMED)
    took = f"took {'up to ' * (len(found) > 1)}{written(most.share, 'share', 2)} of what {link} carried"
    where = f" (run{'s' * (len(found) > 1)} {named})" * (len(runs) > 1)
    return [f"{MARK} other traffic {took}{where}: shares and fairness are those of the flows that are counted"]
