"""The points of the parameters that a figure shows, and their places: panels, lines, positions along an axis. Pure.

In: a figure's wish (labs/record/figures.py), the points of a summary. Out: a `FigureLayout`. Without a choice, all that
varies is shown: what is compared as lines side by side, what would be too many lines in panels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ewan.analysis.figures import scales
from ewan.analysis.load import shared, words
from ewan.analysis.rows import spread
from ewan.labs.base import codec
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.independent import independent
from ewan.labs.record.scenario_requests import Parameter
from ewan.labs.record.summary import PointSummary

MOST_LINES = 12
USUAL_LINES = 8
"""Lines of a panel where the figure names neither lines nor panels."""
STROKES = 6
"""Colours, and dashes with markers."""
MOST_PANELS = 12
MOST_RUNS = 1000
"""Runs whose tables a figure is made of."""
COMPARED = "congestion"
"""The parameter that papers on transport compare, where a scenario names no reference."""

Key = tuple[tuple[str, str], ...]
"""Parameters with their values."""


@dataclass(frozen=True)
class FigurePoint:
    """A point of the parameters in a figure: its panel, its line, and the point itself, as a summary has it."""

    panel: Key
    line: Key
    point: PointSummary

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters of the point."""
        return self.point.parameters


@dataclass(frozen=True)
class FigureLayout:
    """`panels` and `lines` are all that are drawn, in order; `places` those of all points, drawn or not."""

    places: Sequence[FigurePoint]
    panels: Sequence[Key]
    lines: Sequence[Key]
    facets: Sequence[str]
    grouped: Sequence[str]
    left_out: str = ""
    """The part that is not drawn, in words for the caption."""
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The values of each parameter in order: those of the whole experiment, so that all its figures draw a value in the
    same way."""

    def of(self, panel: Key, line: Key | None = None) -> list[FigurePoint]:
        """The points of a panel, or of a line in it."""
        return [each for each in self.places if each.panel == panel and (line is None or each.line == line)]

    def drawn(self) -> list[FigurePoint]:
        """The points that are drawn."""
        return [each for each in self.places if each.panel in self.panels and each.line in self.lines]

    @cached_property
    def shared(self) -> frozenset[str]:
        """The values that several of the parameters have."""
        return shared(self.values)

    def named(self, key: Key) -> str:
        """`cubic, rtt = 20ms`; a word that is a value of several parameters has its name too."""
        return words(key, self.shared)

    def stroke(self, line: Key) -> tuple[int, int]:
        """Numbers of a line's colour, and of its dash and marker. Each value of a parameter has its own in all figures
        of an experiment. Of two parameters the first has the colours."""
        every = [self.values[name] for name, _ in line]
        ranks = [values.index(value) for values, (_, value) in zip(every, line, strict=True)]
        if len(line) == 2 and max(map(len, every)) <= STROKES:
            return ranks[0], ranks[1]
        number = ranks[0] if len(line) == 1 else self.lines.index(line)
        return number % STROKES, (number + number // STROKES) % STROKES


def picked(found: FigureLayout, most: int) -> FigureLayout:
    """The layout of a figure that is drawn from the tables of runs. With more than `most` runs, only the drawn points
    are kept, and the first runs of each, the same number for all points."""
    total = sum(len(place.point.runs) for place in found.places)
    if total <= most:
        return found
    drawn = found.drawn()
    each = max(most // max(len(drawn), 1), 1)
    places = [replace(place, point=codec.replace(place.point, runs=place.point.runs[:each])) for place in drawn]
    runs = sum(len(place.point.runs) for place in places)
    several = f", of each point the first {each}" if any(len(place.point.runs) > each for place in drawn) else ""
    words = f" Made of {runs} of {total} runs{several}: {len(drawn)} of {len(found.places)} points are drawn."
    return replace(found, places=places, left_out=words)


def layout(
    spec: FigureSpec,
    points: Sequence[PointSummary],
    compared: str | None = None,
    every: Sequence[PointSummary] = (),
) -> FigureLayout:
    """`points` of a summary; `compared`: the parameter whose values are compared with each other. `every`: the points
    of the experiment, where `points` are a part of them. A point without the parameter of an axis has no place."""
    own = [point for point in points if _chosen(point.parameters, spec) and point.parameters.keys() >= {*spec.by}]
    if spec.run is not None:
        own = [point for point in own if spec.run in point.runs]
    values = _values(own)
    # What follows from another parameter, as a number of sources from a congestion level, needs no line of its own.
    rest = independent([point.parameters for point in own], (*spec.by, *spec.facets, *(spec.lines or ())))
    rest = [name for name in values if name in rest or (name in (spec.lines or ()) and len(values[name]) > 1)]
    facets = list(spec.facets)
    if spec.kind == "phase":
        # What else varies are points of a line.
        grouped = list(spec.lines) if spec.lines is not None else _ranked(rest, values, compared)[:1]
    elif spec.lines is None:
        # What is compared comes first: it has colours of its own.
        grouped = _ranked(rest, values, compared)
        while not spec.facets and len(grouped) > 1 and math.prod(len(values[name]) for name in grouped) > USUAL_LINES:
            if len(facets) == 2:
                break
            facets.append(grouped.pop())
    else:
        grouped = list(spec.lines)
        others = [name for name in rest if name not in grouped]
        if spec.facets:
            grouped += others
        else:
            facets += others
    if spec.kind in ("map", "flow chart"):
        facets, grouped = [*facets, *grouped], []
    places = [FigurePoint(_key(point, facets), _key(point, grouped), point) for point in own]
    rank = {name: {value: at for at, value in enumerate(each)} for name, each in values.items()}

    def order(key: Key) -> tuple[int, ...]:
        return tuple(rank[name].get(value, -1) if name in rank else 0 for name, value in key)

    panels = sorted({each.panel for each in places}, key=order)
    lines = sorted({each.line for each in places}, key=order)
    shown = [panels[at] for at in spread(len(panels), MOST_PANELS)]
    kept = [lines[at] for at in spread(len(lines), MOST_LINES)]
    left = [f"{len(kept)} of {len(lines)} lines"] * (len(kept) < len(lines))
    left += [f"{len(shown)} of {len(panels)} panels"] * (len(shown) < len(panels))
    left_out = f" {' and '.join(left)} drawn, all are in the CSV." if left else ""
    return FigureLayout(places, shown, kept, facets, grouped, left_out, _values(every or points))


def _values(points: Sequence[PointSummary]) -> dict[str, list[str]]:
    """The values of each parameter, in order."""
    names = dict.fromkeys(name for point in points for name in point.parameters)
    return {name: ordered(point.parameters.get(name) for point in points) for name in names}


def ordered(values: Iterable[Parameter | None]) -> list[str]:
    """Each value once, as it is written; numbers of one unit by size, words as they come."""
    texts = list(dict.fromkeys(str(value) for value in values))
    numbers = {text: scales.number(text) for text in texts}
    one_unit = len({unit for _, unit in numbers.values()}) == 1
    if one_unit and all(value == value for value, _ in numbers.values()):
        return sorted(texts, key=lambda text: numbers[text][0])
    return texts


def _ranked(names: Sequence[str], values: Mapping[str, Sequence[str]], compared: str | None) -> list[str]:
    """The names in order: the compared parameter first, then parameters with words as values, then numbers."""

    def rank(name: str) -> int:
        words = any(value != value for value, _ in map(scales.number, values[name]))
        return 0 if name == compared else 1 if name == COMPARED else 2 if words else 3

    return sorted(names, key=rank)


def _chosen(parameters: Mapping[str, Parameter], spec: FigureSpec) -> bool:
    return all(str(parameters.get(name)) == value for name, value in spec.where)


def _key(point: PointSummary, names: Sequence[str]) -> Key:
    return tuple((name, str(point.parameters.get(name))) for name in names)
