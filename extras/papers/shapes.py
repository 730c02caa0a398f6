"""The shape of a paper's curve, as a sentence that is checked on measured values. Pure.

In: a line of a target, and the points of a summary. Out: whether it holds, and the values that show it.

    METRIC grows with PARAM                  and `falls with`
    METRIC is largest at PARAM=VALUE         and `least at`: among all values of that parameter
    METRIC is at most VALUE                  and `at least`
    METRIC at PARAM=VALUE is more than at PARAM=VALUE
                                             and `less than at`, `more than 2 times that at`, `less than 0.8 times …`
    METRIC at PARAM=VALUE is within 5% of that at PARAM=VALUE
    …, where PARAM=VALUE and PARAM=VALUE     only these points

The other parameters make groups of points; a line holds if it holds in each group."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from ewan.labs.base.codec import Struct
from ewan.labs.base.units import UnitError, parse_published
from ewan.labs.base.units.shown import written
from ewan.labs.record.independent import independent
from ewan.labs.record.scenario_requests import Values
from ewan.labs.record.summary import Number

Kind = Literal["grows", "falls", "largest", "least", "at most", "at least", "more", "less", "within"]
Pairs = tuple[tuple[str, str], ...]
EXAMPLE = 'write a line like "aggregate goodput grows with streams" (extras/papers/shapes.py lists all)'

_AT = r"[a-z][a-z0-9_]*=\S+(?: and [a-z][a-z0-9_]*=\S+)*"
_FORMS: tuple[tuple[str, str], ...] = (
    ("along", r"(?P<metric>.+?) (?P<kind>grows|falls) with (?P<by>[a-z][a-z0-9_]*)"),
    ("extreme", rf"(?P<metric>.+?) is (?P<kind>largest|least) at (?P<at>{_AT})"),
    ("bound", r"(?P<metric>.+?) is (?P<kind>at most|at least) (?P<value>[0-9].*)"),
    (
        "pair",
        rf"(?P<metric>.+?) at (?P<at>{_AT}) is (?P<kind>more|less) than "
        rf"(?:(?P<factor>[0-9]+(?:\.[0-9]+)?) times that )?at (?P<than>{_AT})",
    ),
    (
        "near",
        rf"(?P<metric>.+?) at (?P<at>{_AT}) is (?P<kind>within) (?P<value>[0-9][0-9.]*%) of that at (?P<than>{_AT})",
    ),
)


class MeasuredMean(Struct, omit_defaults=False):
    """A metric's mean with the bounds of its interval, if there is one."""

    mean: Number | None
    low: Number | None
    high: Number | None
    unit: str


class MeasuredPoint(Struct):
    """Measured values for one set of parameters; `seeds`: how many runs."""

    parameters: Values
    seeds: int
    metrics: dict[str, MeasuredMean]


@dataclass(frozen=True, slots=True)
class Shape:
    """A line, read. `value` is in the metric's unit, of `within` a share."""

    line: str
    metric: str
    kind: Kind
    by: str = ""
    at: Pairs = ()
    than: Pairs = ()
    factor: float = 1
    value: float = 0
    where: Pairs = ()

    @property
    def names(self) -> list[str]:
        """The parameters that it names."""
        return [*([self.by] if self.by else []), *(name for name, _ in (*self.at, *self.than, *self.where))]


@dataclass(frozen=True, slots=True)
class ShapeEvidence:
    """The evidence for a line: `holds` is None where nothing was measured for it; `found`: the values."""

    holds: bool | None
    found: str


def parse(line: str) -> Shape:
    """ValueError for another sentence."""
    text, _, where = " ".join(line.split()).partition(", where ")
    for _, form in _FORMS:
        if (found := re.fullmatch(form, text)) is not None:
            words = found.groupdict()
            kind: Kind = next(each for each in _KINDS if each == words["kind"])
            at = _pairs(words.get("at"))
            by = words.get("by") or (at[0][0] if kind in ("largest", "least") else "")
            return Shape(
                line,
                words["metric"],
                kind,
                by,
                at,
                _pairs(words.get("than")),
                float(words.get("factor") or 1),
                _value(words.get("value")),
                _pairs(where or None),
            )
    raise ValueError(EXAMPLE)


_KINDS: tuple[Kind, ...] = ("grows", "falls", "largest", "least", "at most", "at least", "more", "less", "within")


def _pairs(text: str | None) -> Pairs:
    if text is None:
        return ()
    pairs = []
    for part in text.split(" and "):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals and value):
            raise ValueError(f'"{part}": write a parameter and its value, like "where buffer=63pkt"')
        pairs.append((name, value))
    return tuple(pairs)


def _value(text: str | None) -> float:
    if text is None:
        return 0
    try:
        return parse_published(text)[0]
    except UnitError as error:
        raise ValueError(f'"{text}": {error}') from None


def check(shape: Shape, points: Sequence[MeasuredPoint]) -> ShapeEvidence:
    """The evidence whether the line holds in all groups of points that it is about."""
    own = [point for point in points if _is(point, shape.where) and _mean(point, shape.metric) is not None]
    match shape.kind:
        case "grows" | "falls":
            seen = [_along(shape, group) for group in _groups(own, [shape.by]) if len(group) > 1]
        case "largest" | "least":
            seen = [each for group in _groups(own, [shape.by]) if (each := _extreme(shape, group)) is not None]
        case "at most" | "at least":
            seen = [_bound(shape, own)] if own else []
        case _:
            named = list(dict.fromkeys(name for name, _ in (*shape.at, *shape.than)))
            seen = [each for group in _groups(own, named) if (each := _pair(shape, group)) is not None]
    if not seen:
        return ShapeEvidence(None, "not measured")
    kept = sum(each.holds is True for each in seen)
    count = f" (in {kept} of {len(seen)})" if len(seen) > 1 else ""
    failing = next((each.found for each in seen if not each.holds), None)
    return ShapeEvidence(kept == len(seen), f"{failing or seen[0].found}{count}")


def _mean(point: MeasuredPoint, metric: str) -> float | None:
    found = point.metrics.get(metric)
    return None if found is None else found.mean


def _half(point: MeasuredPoint, metric: str) -> float:
    """Half the width of the interval; 0 without one."""
    measured = point.metrics[metric]
    return 0.0 if measured.low is None or measured.high is None else (measured.high - measured.low) / 2


def _is(point: MeasuredPoint, pairs: Pairs) -> bool:
    return all(str(point.parameters.get(name)) == value for name, value in pairs)


def _groups(points: Sequence[MeasuredPoint], named: Sequence[str]) -> list[list[MeasuredPoint]]:
    """Groups of points that differ only in the named parameters, and in those that depend on them."""
    others = independent([point.parameters for point in points], named)
    groups: dict[tuple[str, ...], list[MeasuredPoint]] = {}
    for point in points:
        groups.setdefault(tuple(str(point.parameters.get(name)) for name in others), []).append(point)
    return list(groups.values())


def _along(shape: Shape, group: Sequence[MeasuredPoint]) -> ShapeEvidence:
    """The evidence that values go one way from the first to the last, and that no step goes back by more than half the
    intervals."""
    ordered = sorted(group, key=lambda point: _number(point.parameters.get(shape.by)))
    values = [_at(point, shape.metric) for point in ordered]
    sign = 1 if shape.kind == "grows" else -1
    steps = [
        sign * (_at(second, shape.metric) - _at(first, shape.metric))
        >= -(_half(first, shape.metric) + _half(second, shape.metric))
        for first, second in pairwise(ordered)
    ]
    return ShapeEvidence(sign * (values[-1] - values[0]) > 0 and all(steps), _list(ordered, shape.metric))


def _extreme(shape: Shape, group: Sequence[MeasuredPoint]) -> ShapeEvidence | None:
    wanted = [point for point in group if _is(point, shape.at)]
    others = [point for point in group if not _is(point, shape.at)]
    if not wanted or not others:
        return None
    own = _at(wanted[0], shape.metric)
    values = [_at(point, shape.metric) for point in others]
    holds = own > max(values) if shape.kind == "largest" else own < min(values)
    nearest = (max if shape.kind == "largest" else min)(others, key=lambda point: _at(point, shape.metric))
    name = nearest.parameters[shape.by]
    here, there = _text(wanted[0], shape.metric), _text(nearest, shape.metric)
    return ShapeEvidence(holds, f"{here}, next {name} {there}" if holds else f"{here}; {name} {there}")


def _bound(shape: Shape, points: Sequence[MeasuredPoint]) -> ShapeEvidence:
    most = shape.kind == "at most"
    worst = (max if most else min)(points, key=lambda point: _at(point, shape.metric))
    value = _at(worst, shape.metric)
    return ShapeEvidence(value <= shape.value if most else value >= shape.value, _text(worst, shape.metric))


def _pair(shape: Shape, group: Sequence[MeasuredPoint]) -> ShapeEvidence | None:
    first = next((point for point in group if _is(point, shape.at)), None)
    second = next((point for point in group if _is(point, shape.than)), None)
    if first is None or second is None:
        return None
    own, other = _at(first, shape.metric), _at(second, shape.metric)
    if shape.kind == "within":
        holds = within(own - other, shape.value * abs(other))
    else:
        holds = own > shape.factor * other if shape.kind == "more" else own < shape.factor * other
    return ShapeEvidence(holds, f"{_text(first, shape.metric)} against {_text(second, shape.metric)}")


def within(difference: float, tolerance: float) -> bool:
    """Return whether the difference is no more, but for the last digits of the arithmetic: 1 − 0.99 is more than 0.01
    in binary."""
    return abs(difference) <= tolerance or math.isclose(abs(difference), tolerance, rel_tol=1e-9)


def _at(point: MeasuredPoint, metric: str) -> float:
    value = _mean(point, metric)
    assert value is not None, metric  # `check` keeps only such points
    return value


def _text(point: MeasuredPoint, metric: str) -> str:
    return written(_mean(point, metric), point.metrics[metric].unit)


def _list(points: Sequence[MeasuredPoint], metric: str) -> str:
    return " → ".join(_text(point, metric) for point in points)


def _number(value: Any) -> float:
    """The number that orders a parameter's value: `63pkt`, `0.5BDP`, `10ms` by their numbers."""
    text = str(value)
    try:
        return parse_published(text)[0]
    except UnitError:
        found = re.match(r"-?[0-9]+(?:\.[0-9]+)?", text)
        return float(found[0]) if found else 0.0
