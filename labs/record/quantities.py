"""Reads requested quantities: a metric of the load, or of other flows: `steady goodput of cross`, `share of each step`.

In: words of a scenario or of the command line. Out: a `Quantity`. Who is meant is looked up in a run's flows by the
analysis; here are only the words for it.

    METRIC                 of the load's flows
    METRIC of WHO          WHO: a step's name, a role, `source NODE` or `flow NAME`
    METRIC of each KIND    KIND: step, role, source or flow; one value for each that a run has
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ewan.labs.base.wording import nearest
from ewan.labs.record.metrics import AMBIGUOUS, METRICS, Metric, metric_named

Kind = Literal["step", "role", "source", "flow"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Role = Literal["load", "reverse", "background", "cross"]
ROLES: tuple[Role, ...] = get_args(Role)
"""The roles as which metrics count a step's flows."""
_OF = " of "


@dataclass(frozen=True, slots=True)
class Selection:
    """Flows by what they have in common. `kind` None: a step of that name, or the role where there is no such step.

    `name` None: each of that kind.
    """

    kind: Kind | None
    name: str | None

    def __str__(self) -> str:
        if self.name is None:
            return f"each {self.kind}"
        return self.name if self.kind in (None, "step", "role") else f"{self.kind} {self.name}"

    def missing(self, steps: Sequence[str]) -> str | None:
        """The reason why it can mean nothing in a scenario of these steps; None where it may."""
        if self.name is None or self.kind not in (None, "step") or self.name in steps:
            return None
        if self.kind is None and self.name in ROLES:
            return None
        return f"there is no such step or role, {nearest(self.name, [*steps, *ROLES])}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """`selection` None: the load's flows."""

    metric: Metric
    selection: Selection | None = None

    def __str__(self) -> str:
        return self.metric.name if self.selection is None else f"{self.metric.name}{_OF}{self.selection}"


def parse(text: object) -> Quantity:
    """ValueError for what is no metric, or no way to say of whom."""
    words = " ".join(str(text).split())
    name, _, who = words.rpartition(_OF)
    for known in (METRICS.get, metric_named):  # extras are looked for last: few metrics are of theirs
        if metric := known(words):
            return Quantity(metric)
        if metric := known(name):
            return Quantity(metric, _selection(metric, who))
    if words in AMBIGUOUS:
        raise ValueError(f"unknown metric, write {AMBIGUOUS[words]}")
    if name in AMBIGUOUS:
        raise ValueError(f"unknown metric {name!r}, write {AMBIGUOUS[name]}")
    raise ValueError(f"unknown metric, {nearest(name or words, METRICS, parts=True)}")


def _selection(metric: Metric, who: str) -> Selection:
    if not metric.selectable:
        raise ValueError(f'says itself whose it is: write "{metric.name}"')
    return _fitting(metric, selection(metric.name, who))


def selection(name: str, who: str) -> Selection:
    """Whose `name` is meant; ValueError for other words than those above."""
    first, _, rest = who.partition(" ")
    if first == "each":
        if rest not in KINDS:
            raise ValueError(f'of each what? write "{name} of each step", or {", ".join(KINDS[1:])}')
        return Selection(rest, None)
    if rest and first in KINDS:
        return Selection(first, rest)
    if rest:
        raise ValueError(f'whose? write "{name} of" and a step\'s name, a role, "source NODE" or "flow NAME"')
    return Selection(None, who)


def _fitting(metric: Metric, chosen: Selection) -> Selection:
    if metric.commands and chosen.kind in ("role", "flow"):
        raise ValueError(
            f'commands have no {chosen.kind}: write "{metric.name} of" and a step\'s name or "source NODE"'
        )
    return chosen


def metric_of(name: str) -> Metric | None:
    """The metric in a quantity's words; None for other words, such as those of another version."""
    quantity = _parsed(name)
    return None if quantity is None else quantity.metric


def _parsed(name: str) -> Quantity | None:
    try:
        return parse(name)
    except ValueError:
        return None


def ordered(names: Collection[str]) -> list[str]:
    """Quantities as summaries have them: metrics of the load in the order of the vocabulary, then the others."""
    return [*(name for name in METRICS if name in names), *(name for name in names if name not in METRICS)]


def meant(wanted: Iterable[str], there: Iterable[str]) -> list[str]:
    """The members of `there` that `wanted` asks for: `share of each step` stands for that of every step."""
    known = list(there)
    found: dict[str, None] = {}
    for words in wanted:
        each = _parsed(words)
        if each is not None and each.selection is not None and each.selection.name is None:
            found |= dict.fromkeys(name for name in known if _is_of_each(_parsed(name), each.metric, each.selection))
        elif words in known:
            found[words] = None
    return list(found)


def _is_of_each(own: Quantity | None, metric: Metric, each: Selection) -> bool:
    if own is None or own.selection is None or own.metric != metric:
        return False
    # The words for a step or a role are only its name.
    kind = None if each.kind in ("step", "role") else each.kind
    return own.selection.kind == kind and own.selection.name is not None
