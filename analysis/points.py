"""Points of an experiment's parameters, and the values that runs at each of them have, by seed. Pure.

In: parameters, names of quantities. Out: the point that another one is compared with, the quantities of its runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ewan.labs.record import quantities
from ewan.labs.record.independent import independent
from ewan.labs.record.scenario_requests import Parameter

Point = tuple[tuple[str, Parameter], ...]
Seeds = Mapping[int, Mapping[str, float]]
"""Metrics of a point's runs, by seed."""
BySeed = Mapping[Point, Seeds]


class PointIndex:
    """The points of an experiment, to find one beside another; made once for all that is looked up."""

    def __init__(self, points: Iterable[Point]) -> None:
        self._points = tuple(points)
        self._independent: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._found: dict[tuple[str, ...], dict[tuple[str, ...], Point]] = {}
        self._exact: dict[frozenset[tuple[str, str]], Point] = {}
        for point in self._points:
            self._exact.setdefault(frozenset((name, str(value)) for name, value in point), point)

    def of(self, parameters: Mapping[str, Parameter], changed: Mapping[str, Parameter]) -> Point | None:
        """The point that differs from the given one only in `changed`, and in parameters that depend on it: a number of
        sources depends on a congestion level."""
        wanted = {name: str(value) for name, value in {**parameters, **changed}.items()}
        exact = self._exact.get(frozenset(wanted.items()))
        if exact is not None:
            return exact
        own = tuple(changed)
        if own not in self._independent:
            self._independent[own] = tuple(independent([dict(point) for point in self._points], own))
        names = (*own, *self._independent[own])
        return self._by(names).get(tuple(wanted.get(name, "None") for name in names))

    def _by(self, names: tuple[str, ...]) -> Mapping[tuple[str, ...], Point]:
        """The first point of each choice of these parameters' values."""
        if names not in self._found:
            self._found[names] = {}
            for point in self._points:
                values = dict(point)
                self._found[names].setdefault(tuple(str(values.get(name)) for name in names), point)
        return self._found[names]


def names(own: Seeds) -> list[str]:
    """All quantities that runs of a point have, in their order."""
    return quantities.ordered(list(dict.fromkeys(name for run in own.values() for name in run)))


def of_seed(own: Seeds, name: str) -> dict[int, float]:
    """One quantity's values, by seed."""
    return {seed: run[name] for seed, run in own.items() if name in run}
