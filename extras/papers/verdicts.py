"""Agreement of measured values with those of a paper. Pure.

In: a target, and the summary of each of its experiments. Out: a row for each number and each shape, with a verdict, and
the verdict of the target. A number agrees where ours is within the target's tolerance, or the paper's is within our
interval. Where the paper's is within an interval that is too wide to decide, the verdict is neither agreement nor
difference. A difference is explained when the experiment that the target names for it shows it: there the number
agrees, or at least half of the difference is gone; there the shape holds."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Literal

from ewan.extras.papers import shapes
from ewan.extras.papers.shapes import MeasuredPoint, within
from ewan.extras.papers.targets import CurveClaim, Number, PaperTarget, share
from ewan.labs.base.codec import Struct
from ewan.labs.base.units.shown import NONE, with_interval, written
from ewan.labs.record.independent import independent
from ewan.labs.record.summary import PublishedBeside

Word = Literal[
    "agrees",
    "differs, because",
    "differs",
    "too uncertain",
    "shape holds",
    "shape differs, because",
    "shape differs",
    "–",
]
ENOUGH = 0.5
"""The part of a difference that is gone in the experiment that explains it."""
TELLING = 2
"""An interval of at most so many tolerances each way tells something; a wider one would agree with too much."""
_published = operator.attrgetter("metric", "source", "when", "than", "paper")
"""The keys of a row of `beside` that belong to the published value."""
_WORST: Sequence[Word] = (
    "–",
    "differs",
    "shape differs",
    "too uncertain",
    "differs, because",
    "shape differs, because",
    "agrees",
    "shape holds",
)


class PaperSummary(Struct):
    """Measured values of an experiment, as far as it is compared with a paper: points and `beside` of summary.json."""

    points: tuple[MeasuredPoint, ...]
    beside: tuple[PublishedBeside, ...]


Summaries = Mapping[str, PaperSummary | None]
"""By experiment; None where nothing was measured."""


class VerdictRow(Struct):
    """A number or a shape: the paper's value, the measured one, the verdict and its reason, in words for people;
    `values` has the same as data."""

    what: str
    paper: str
    here: str
    verdict: Word
    why: str
    values: Mapping[str, str | int | float | Mapping[str, str | int] | None]


class Outcome(Struct):
    """The outcome of a target. `verdict` is the worst of its rows."""

    name: str
    title: str
    paper: str
    rows: tuple[VerdictRow, ...]
    verdict: Word


def judge(target: PaperTarget, found: Summaries) -> Outcome:
    """The rows of a target: numbers first, then shapes."""
    description = target.description
    rows = [row for number in description.numbers for row in _number(target, number, found)]
    rows += [_shape(target, curve, found) for curve in description.shapes]
    there = {row.verdict for row in rows}
    worst: Word = next((word for word in _WORST if word in there), "–")
    return Outcome(target.name, description.title, description.paper, tuple(rows), worst)


def _number(target: PaperTarget, number: Number, found: Summaries) -> list[VerdictRow]:
    summary = found.get(number.of or target.first)
    chosen = _chosen(number, summary)
    rows = [_of_beside(number, each, _point(each, chosen), found) for each in chosen]
    what = f"{number.metric}{_at(number.when)}"
    return rows or [VerdictRow(what, NONE, "not measured", "–", "", {"metric": number.metric})]


def _chosen(number: Number, summary: PaperSummary | None) -> list[PublishedBeside]:
    """The published values that a number means, with the measured ones."""
    return [
        each
        for each in (() if summary is None else summary.beside)
        if each.metric == number.metric
        and each.here is not None
        and each.source.startswith(number.source or "")
        and all(str(each.parameters.get(name)) == str(value) for name, value in number.when.items())
    ]


def _point(each: PublishedBeside, chosen: Sequence[PublishedBeside]) -> Mapping[str, str | int | None]:
    """The parameters that distinguish a value's point from those of other rows: those of the published value, and those
    that vary among the points that it is compared with."""
    same = [row.parameters for row in chosen if _published(row) == _published(each)]
    return {**each.when, **{name: each.parameters.get(name) for name in independent(same, each.when)}}


def _of_beside(
    number: Number, each: PublishedBeside, point: Mapping[str, str | int | None], found: Summaries
) -> VerdictRow:
    verdict, why = _agreement(number, each), number.why
    if verdict == "too uncertain":
        why = f"its interval takes in the paper's number, and much else: more seeds; {number.why}"
    elif verdict == "differs" and number.because is not None and number.shown_by is not None:
        shown = _same(each, found.get(number.shown_by))
        why, explained = _explained(number, each, shown)
        verdict = "differs, because" if explained else "differs"
    elif verdict == "differs":
        why = f"beyond {number.within}: {number.why}"
    than = f", more than at{_at(each.than)}" if each.than else ""
    return VerdictRow(
        f"{each.metric}{_at(point)}{than}",
        written(each.paper, each.unit),
        with_interval(_here(each), each.low, each.high, each.unit),
        verdict,
        why,
        {key: getattr(each, key) for key in ("metric", "parameters", "paper", "here", "low", "high", "unit", "source")},
    )


def _here(each: PublishedBeside) -> int | float:
    assert each.here is not None, each.metric  # `_chosen` and `_same` keep only such rows
    return each.here


def _agreement(number: Number, each: PublishedBeside) -> Word:
    low, high, paper, here = each.low, each.high, each.paper, _here(each)
    tolerance = share(number.within) * (1.0 if each.unit == "share" else abs(paper))
    if low is not None and high is not None and low <= paper <= high:
        return "agrees" if within((high - low) / 2, TELLING * tolerance) else "too uncertain"
    return "agrees" if within(here - paper, tolerance) else "differs"


def _same(each: PublishedBeside, summary: PaperSummary | None) -> PublishedBeside | None:
    """The same published value beside the result of another experiment, at the same point where it has several."""
    rows = [
        row
        for row in (() if summary is None else summary.beside)
        if row.here is not None and _published(row) == _published(each)
    ]
    own = each.parameters
    return max(
        rows, key=lambda row: sum(own.get(name) == value for name, value in row.parameters.items()), default=None
    )


def _explained(number: Number, each: PublishedBeside, shown: PublishedBeside | None) -> tuple[str, bool]:
    """The reason of a difference, with the value of the experiment that shows it, and whether it does."""
    if shown is None:
        return f"{number.because} ({number.shown_by}: not measured)", False
    left = abs(_here(shown) - shown.paper)
    explained = _agreement(number, shown) == "agrees" or left <= ENOUGH * abs(_here(each) - each.paper)
    value = with_interval(_here(shown), shown.low, shown.high, shown.unit)
    return f"{number.because} ({number.shown_by}: {value}{'' if explained else ', which does not show it'})", explained


def _shape(target: PaperTarget, curve: CurveClaim, found: Summaries) -> VerdictRow:
    seen = _seen(curve, found.get(curve.of or target.first))
    why, verdict = "", _word(seen.holds)
    if seen.holds is False and curve.shown_by is not None:
        other = _seen(curve, found.get(curve.shown_by))
        shows = "" if other.holds else ", which does not show it"
        why = f"{curve.because} ({curve.shown_by}: {other.found}{shows})"
        verdict = "shape differs, because" if other.holds else "shape differs"
    values = {"line": curve.line.line, "holds": seen.holds, "found": seen.found}
    return VerdictRow(curve.line.line, curve.paper, seen.found, verdict, why, values)


def _seen(curve: CurveClaim, summary: PaperSummary | None) -> shapes.ShapeEvidence:
    return shapes.ShapeEvidence(None, "not measured") if summary is None else shapes.check(curve.line, summary.points)


def _word(holds: bool | None) -> Word:
    return "–" if holds is None else "shape holds" if holds else "shape differs"


def _at(parameters: Mapping[str, str | int | None]) -> str:
    words = " ".join(f"{name}={value}" for name, value in parameters.items())
    return f" {words}" if words else ""


def counted(outcomes: Sequence[Outcome]) -> str:
    """`5 agree, 3 differ, because …`: how many targets have which verdict."""
    words = [each.verdict for each in outcomes]
    names = {"–": "not measured"}
    return ", ".join(f"{words.count(word)} {names.get(word, word)}" for word in reversed(_WORST) if word in words)
