"""Finds the parameters of a sweep that vary independently, and those that follow from others. Pure.

In: the parameters of each point. Out: names. A sweep may tie parameters together: a congestion level and the number of
sources that gives it, a pattern and its size. Tables and figures then show the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ewan.labs.record.scenario_requests import Parameter


def varying(points: Sequence[Mapping[str, Parameter]]) -> list[str]:
    """Names of the parameters that are not the same everywhere."""
    names = dict.fromkeys(name for each in points for name in each)
    return [name for name in names if len({str(each.get(name)) for each in points}) > 1]


def independent(points: Sequence[Mapping[str, Parameter]], first: Iterable[str] = ()) -> list[str]:
    """The names that vary, are not among `first`, and whose values do not follow from `first` and the names before
    them."""
    known, found = list(first), []
    for name in varying(points):
        if name in known:
            continue
        apart = {tuple(str(each.get(other)) for other in known) for each in points}
        together = {tuple(str(each.get(other)) for other in (*known, name)) for each in points}
        if len(together) > len(apart):
            known.append(name)
            found.append(name)
    return found
