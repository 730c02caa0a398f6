"""Two metrics against each other, as rate against delay: a point for each point of the parameters.

In: a request. Out: a drawing; an ellipse of one standard deviation over seeds around each point, as Winstein and
Balakrishnan draw them (Remy, SIGCOMM 2013, figure 4).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ewan.analysis.figures import style
from ewan.analysis.figures.choice import FigurePoint
from ewan.analysis.figures.request import FigureError, Request, Value, bounds, needs
from ewan.analysis.figures.style import Drawing, Row
from ewan.analysis.load import NOTHING
from ewan.labs.base.units.shown import fitting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 3
"""Seeds of which an ellipse is drawn."""
MOST_WRITTEN = 8
"""Points of a line up to which each has its parameters written beside it."""

Pair = tuple[FigurePoint, Value, Value]


def draw(request: Request) -> Drawing:
    """FigureError where no point has both metrics."""
    spec, layout = request.spec, request.layout
    vertical, across = spec.quantities
    pairs: list[Pair] = [
        (place, y, x)
        for place in layout.places
        if (y := request.value(vertical, place.point)) is not None
        and (x := request.value(across, place.point)) is not None
    ]
    shown = {id(place) for place in layout.drawn()}
    drawn = [pair for pair in pairs if id(pair[0]) in shown]
    if not drawn:
        raise FigureError(f'"{spec.head}": no point has both metrics: {needs(spec)}')
    per_y, unit_y = fitting([y.mean for _, y, _ in drawn], request.unit(vertical))
    per_x, unit_x = fitting([x.mean for _, _, x in drawn], request.unit(across))
    columns = request.look.across(len(layout.panels), 2.8)
    from matplotlib.patches import Ellipse

    ellipses = 0
    written: dict[Axes, list[style.Label]] = {}
    with style.sheet(len(layout.panels), 2.8, columns, look=request.look) as (figure, axes):
        for axis, panel in zip(axes, layout.panels, strict=True):
            for line in layout.lines:
                own = [pair for pair in drawn if pair[0].panel == panel and pair[0].line == line]
                if not own:
                    continue
                tint, dash = layout.stroke(line)
                colour = style.COLOURS[tint]
                xs, ys = [x.mean / per_x for _, _, x in own], [y.mean / per_y for _, y, _ in own]
                axis.plot(xs, ys, color=colour, linestyle=style.DASHES[dash], linewidth=0.6 * request.look.line,
                          marker=style.MARKERS[dash], markersize=3.4 * request.look.line,
                          label=layout.named(line) or None)  # fmt: skip
                for (place, y, x), at_x, at_y in zip(own, xs, ys, strict=True):
                    shape = deviation(x, y, per_x, per_y)
                    if shape is not None:
                        ellipses += 1
                        width, height, angle = shape
                        oval = partial(Ellipse, (at_x, at_y), width, height, angle=angle, linewidth=0.7)
                        axis.add_patch(oval(fc=colour, alpha=0.18))
                        axis.add_patch(oval(fill=False, ec=colour))
                    if len(own) <= MOST_WRITTEN and (words := _words(request, place)):
                        written.setdefault(axis, []).append((at_x, at_y, words))
            style.title(axis, layout.named(panel), columns)
        for quantity, set_limits, get_limits, per in (
            (across, axes[0].set_xlim, axes[0].get_xlim, per_x),
            (vertical, axes[0].set_ylim, axes[0].get_ylim, per_y),
        ):
            low, high = get_limits()
            most = bounds(quantity.metric)[1]
            set_limits(max(low - 0.05 * (high - low), 0), high if most is None else min(high, 1.02 * most / per))
        style.outer_labels(axes, _label(str(across), unit_x), _label(str(vertical), unit_y), columns)
        style.legend(figure, axes)
        for axis, labels in written.items():
            style.beside_points(axis, labels, 0.8 * request.look.font)
        said = f"{vertical.metric.name}: {vertical.metric.meaning}. {across.metric.name}: {across.metric.meaning}."
        n = request.seeds_words([(place, value.n) for place, value, _ in drawn])
        said += (
            f" Points: means over seeds; ellipses: one standard deviation over seeds, {n}."
            if ellipses
            else f" Points: means over seeds, {n}: too few for ellipses."
        )
        runs = [number for place, _, _ in drawn for number in place.point.runs]
        rows = [_row(place, str(vertical), y, str(across), x) for place, y, x in pairs]
        title = spec.title or f"{vertical} against {across}"
        return style.drawn(figure, spec.file, title, said + layout.left_out + " " + request.made_of(runs), rows,
                           request.kinds)  # fmt: skip


def deviation(x: Value, y: Value, per_x: float = 1.0, per_y: float = 1.0) -> tuple[float, float, float] | None:
    """Width, height and angle (degrees) of the ellipse of one standard deviation; None of too few seeds.

    Its axes are the square roots of the eigenvalues of the sample's covariance.
    """
    common = sorted(x.each.keys() & y.each.keys())
    if len(common) < FEWEST:
        return None
    pairs = np.array([[x.each[run] / per_x for run in common], [y.each[run] / per_y for run in common]])
    variances, axes = np.linalg.eigh(np.cov(pairs))
    width, height = 2 * np.sqrt(np.maximum(variances[::-1], 0))
    return float(width), float(height), float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))


def _words(request: Request, place: FigurePoint) -> str:
    """The parameters that distinguish a point from the others of its line: neither lines nor panels show them."""
    layout, known = request.layout, {name for name, _ in (*place.line, *place.panel)}
    values: dict[str, set[str]] = {}
    for each in layout.places:
        for name, value in each.parameters.items():
            values.setdefault(name, set()).add(str(value))
    own = place.parameters
    return ", ".join(
        str(value) if any(map(str.isalpha, str(value))) and str(value) not in layout.shared else f"{name} {value}"
        for name, value in own.items()
        if name not in known and len(values[name]) > 1 and value not in NOTHING
    )  # fmt: skip


def _label(words: str, unit: str) -> str:
    return f"{words} ({unit})" if unit else words


def _row(place: FigurePoint, vertical: str, y: Value, across: str, x: Value) -> Row:
    shape = deviation(x, y)
    ellipse = {} if shape is None else dict(zip(("width", "height", "angle (degrees)"), shape, strict=True))
    return {**place.parameters, across: x.mean, vertical: y.mean, "n": y.n, **ellipse}
