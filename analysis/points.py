"""Points of an experiment's parameters, and the values that runs at each of them have, by seed. Pure.

In: parameters, names of quantities. Out: the point that another one is compared with, the quantities that are meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from labs.record import quantities
from labs.record.independent import independent

Point = tuple[tuple[str, Any], ...]
Seeds = Mapping[int, Mapping[str, float]]
"""Metrics of a point's runs, by seed."""
BySeed = Mapping[Point, Seeds]


def other(by_seed: BySeed, parameters: Mapping[str, Any], changed: Mapping[str, Any]) -> Point | None:
    """The point that differs from the given one in nothing but what is changed, and what follows from that: a number of
    sources from a congestion level."""
    wanted = {name: str(value) for name, value in {**parameters, **changed}.items()}
    exact = next((point for point in by_seed if {name: str(value) for name, value in point} == wanted), None)
    if exact is not None:
        return exact
    names = (*changed, *_independent(tuple(by_seed), tuple(changed)))
    return next(
        (point for point in by_seed if all(str(dict(point).get(name)) == wanted.get(name, "None") for name in names)),
        None,
    )


@lru_cache(maxsize=16)
def _independent(points: tuple[Point, ...], changed: tuple[str, ...]) -> tuple[str, ...]:
    """What varies by itself beside `changed`; of an experiment the same for all its points."""
    return tuple(independent([dict(point) for point in points], changed))


def names(own: Seeds) -> list[str]:
    """All quantities that runs of a point have, in their order."""
    return quantities.ordered(list(dict.fromkeys(name for run in own.values() for name in run)))


def meant(wanted: Iterable[str], there: Iterable[str]) -> list[str]:
    """Of what is there, what is wanted: `share of each step` means that of every step."""
    known = list(there)
    found: dict[str, None] = {}
    for words in wanted:
        selection = quantities.parse(words).selection
        if selection is not None and selection.name is None:
            found |= dict.fromkeys(name for name in known if _of_each(name, words))
        elif words in known:
            found[words] = None
    return list(found)


def _of_each(name: str, words: str) -> bool:
    each, own = quantities.parse(words), quantities.parse(name)
    if each.selection is None or own.selection is None or each.metric != own.metric:
        return False
    # The words for a step or a role have the name alone.
    kind = None if each.selection.kind in ("step", "role") else each.selection.kind
    return own.selection.kind == kind and own.selection.name is not None


def of_seed(own: Seeds, name: str) -> dict[int, float]:
    """One quantity's values, by seed."""
    return {seed: run[name] for seed, run in own.items() if name in run}
