"""Tables that several commands print: a plan's, and what was changed in a lab since it came up."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.base.units.shown import about
from ewan.labs.link.change import words as change_words
from ewan.labs.plan import Plan
from ewan.labs.render import table
from ewan.labs.runtime.base import LabError, LinkControl
from ewan.labs.runtime.requests import ChangesRequest

CHANGES = ["link", "direction", "change", "at", "late by"]
"""Columns of `changes`."""


def of_plan(plan: Plan, machine_of: Mapping[str, str] = MappingProxyType({})) -> list[Sheet]:
    """Nodes, links and pairs; `machine_of` as of `ewan.labs.render.table.sheets`."""
    return [grid(title, columns, rows) for title, columns, rows in table.sheets(plan, machine_of)]


def changes(labs: LinkControl, plan: Plan) -> list[list[str]]:
    """A row for each change of a link: what changed, when it was due (since the links started), how late it was."""
    rows = []
    for number in range(len(plan.spinners)):
        try:
            answer = labs.control(plan.lab, number, ChangesRequest())
        except LabError:  # a dead spinner is in the lab's own line
            continue
        for each in answer.changes:
            times = [about(each.requested_ns, "time", 6), about(each.late_ns, "time")]
            rows.append([each.link, each.direction, change_words(each.change), *times])
    return rows
