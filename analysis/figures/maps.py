"""A metric against two parameters: a heat map, with contours where both are numbers.

In: a request. Out: a drawing, a panel for each point of what else varies. The colours go from dark to light in grey
too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ewan.analysis.figures import scales, style
from ewan.analysis.figures.choice import FigurePoint
from ewan.analysis.figures.request import FigureError, Request, Value, needs
from ewan.analysis.figures.style import Drawing, Row
from ewan.labs.base.units.shown import fitting

COLOURS = "cividis"
MOST_WRITTEN = 8
"""Values of a parameter up to which each cell has its number written in it."""


def draw(request: Request) -> Drawing:
    """FigureError where no run has the metric, or a parameter has no such axis."""
    spec, layout = request.spec, request.layout
    (quantity,) = spec.quantities
    try:
        across, up = (
            scales.axis_of(name, (place.parameters[name] for place in layout.places), "categories") for name in spec.by
        )
        numeric = all(
            not scales.axis_of(name, (place.parameters[name] for place in layout.places), spec.scale).words
            for name in spec.by
        )
    except scales.ScaleError as error:
        raise FigureError(f'"scale {spec.scale}": {error}') from None
    grids = {panel: np.full((len(up.places), len(across.places)), np.nan) for panel in layout.panels}
    rows: list[Row] = []
    drawn, unit = [], request.unit(quantity)
    for place in layout.places:
        value = request.value(quantity, place.point)
        if value is None:
            continue
        rows.append({**place.parameters, "metric": str(quantity), "unit": unit, "mean": value.mean, "low": value.low,
                     "high": value.high, "n": value.n})  # fmt: skip
        if place.panel in grids:
            x, y = (str(place.parameters[name]) for name in spec.by)
            grids[place.panel][int(up.places[y]), int(across.places[x])] = value.mean
            drawn.append((place, value))
    if not drawn:
        raise FigureError(f'"{spec.head}": no run has this metric: {needs(spec)}')
    harmed = f"harm to {quantity}" if spec.harm else str(quantity)
    means = [value.mean for _, value in drawn]
    per, unit_name = fitting(means, unit)
    low, high = min(means) / per, max(means) / per
    by_ratio = "loss" in quantity.metric.name and low > 0 and scales.spans_decades(means)
    from matplotlib.colors import LogNorm, Normalize

    norm = LogNorm(low, high) if by_ratio else Normalize(low, high if high > low else low + (abs(low) or 1))
    digits = None if by_ratio or not any(means) else 2 - math.floor(math.log10(max(map(abs, (low, high)))))
    columns = request.look.across(len(layout.panels), 2.6)
    with style.sheet(len(layout.panels), 2.6, columns, look=request.look) as (figure, axes):
        image = None
        for axis, panel in zip(axes, layout.panels, strict=True):
            grid = grids[panel] / per
            edges = [np.arange(count + 1) - 0.5 for count in (len(across.places), len(up.places))]
            image = axis.pcolormesh(*edges, np.ma.masked_invalid(grid), cmap=COLOURS, norm=norm, linewidth=0)
            written = max(grid.shape) <= MOST_WRITTEN
            if numeric and min(grid.shape) >= 3 and not np.isnan(grid).any() and high > low:
                lines = axis.contour(grid, levels=5, colors=style.PAPER, linewidths=0.9 * request.look.line, norm=norm)
                if not written:
                    axis.clabel(lines, fontsize=0.8 * request.look.font, fmt="%.3g")
            if written:
                for (row, column), mean in np.ndenumerate(grid):
                    if not math.isnan(mean):
                        ink = style.INK if float(norm(float(mean))) > 0.55 else style.PAPER
                        axis.text(column, row, _written(float(mean), digits), ha="center", va="center", color=ink,
                                  fontsize=0.85 * request.look.font)  # fmt: skip
            axis.set_xticks(list(across.places.values()), list(across.places))
            axis.set_yticks(list(up.places.values()), list(up.places))
            axis.grid(False)
            style.title(axis, layout.named(panel), columns)
        style.outer_labels(axes, spec.by[0], spec.by[1], columns)
        assert image is not None
        bar = figure.colorbar(image, ax=axes, label=f"{harmed} ({unit_name})" if unit_name else harmed)
        bar.outline.set_linewidth(0.5)
        said = f"{quantity.metric.name}: {quantity.metric.meaning}. {_seeds(request, drawn)}"
        if spec.harm:
            said = f"What is lost of the {quantity} at {request.reference} = {spec.relative_to}, seed by seed " + (
                f"(Ware et al., HotNets 2019); below 0 it gains. Of {said}"
            )
        said += " Lines: contours." if numeric else ""
        runs = [number for place, _ in drawn for number in place.point.runs]
        title = spec.title or f"{harmed} against {' and '.join(spec.by)}"
        return style.drawn(figure, spec.file, title, said + layout.left_out + " " + request.made_of(runs), rows,
                           request.kinds)  # fmt: skip


def _seeds(request: Request, drawn: Sequence[tuple[FigurePoint, Value]]) -> str:
    """The words of the caption about the number of seeds."""
    if all(value.n == 1 for _, value in drawn):
        return "One seed."
    return f"Means over seeds, {request.seeds_words([(place, value.n) for place, value in drawn])}."


def _written(value: float, digits: int | None) -> str:
    """A value with three figures, and no more `digits` behind the point than the largest of the map; None: any
    number."""
    return f"{value if digits is None else round(value, digits) + 0.0:.3g}"
