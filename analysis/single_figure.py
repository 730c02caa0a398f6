"""One figure of an experiment, or of two together, as `ewan results plot` and Studio draw it.

In: directories, what is asked for. Out: the experiment and the drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ewan.analysis import load, summary
from ewan.analysis.compare.overlaid import OverlaidResults
from ewan.analysis.figures import custom
from ewan.analysis.figures.request import FigureError
from ewan.analysis.figures.style import Drawing, Style
from ewan.labs.record.figures import FigureSpec


def drawn(
    directory: Path, spec: FigureSpec, look: Style, kinds: Sequence[str] = (), beside: Path | None = None
) -> tuple[load.ExperimentResults, Drawing]:
    """Draw a figure of one experiment. `beside`: the other experiment, whose runs are drawn on the same axes. LoadError
    for an experiment that cannot be read, FigureError for a figure that cannot be drawn."""
    experiment = load.experiment(directory)
    if beside is None:
        found = summary.for_figure(experiment, spec.quantities)
    else:
        experiment = OverlaidResults(experiment, load.experiment(beside))
        found = experiment.summary(spec.quantities)
    (drawing,) = custom.draw(experiment, found, [spec], look, kinds)
    if isinstance(drawing, str):
        raise FigureError(drawing)
    return experiment, drawing
