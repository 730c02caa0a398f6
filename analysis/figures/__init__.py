"""The figures of an experiment: those that every report has, and those that a scenario or a command asks for.

In: an experiment and its summary. Out: drawings, those that the experiment has data for, in the order of the report.
`choice.py` decides on panels and lines, `scales.py` on axes, a module each draws a kind, and `asked.py` reads each
run's tables once for all figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from ewan.analysis import disturbance_overlap
from ewan.analysis.figures import bars, by_parameter, custom, scales
from ewan.analysis.figures.choice import COMPARED
from ewan.analysis.figures.custom import FigureFiles, Job
from ewan.analysis.figures.request import FigureError, Request
from ewan.analysis.figures.style import PAGE, Drawing, Style, missing
from ewan.analysis.load import ExperimentResults
from ewan.analysis.side_by_side import SharedArgument
from ewan.labs.record import figures, quantities
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.metrics import RANKED
from ewan.labs.record.summary import PointSummary, Summary

MOST_METRICS = 4
FEWEST_VALUES = 3
"""Values that a parameter needs before metrics are drawn against it."""

_USUAL = (
    ("goodput over time", "goodput-over-time"),
    ("cdf of completion time", "completion-cdf"),
    ("cdf of response time", "response-cdf"),
    ("cdf of iteration time", "iteration-cdf"),
    ("cwnd over time", "cwnd"),
    ("queue over time", "queue-over-time"),
    ("device rate over time", "device-rate"),
    ("fairness over time", "fairness-over-time"),
    ("cdf of start lateness", "start-lateness"),
)
USUAL: tuple[FigureSpec, ...] = tuple(figures.parse(line, name) for line, name in _USUAL)
"""Those of every report that has data for them, beside the metrics against a parameter and to a reference."""


def draw(
    experiment: ExperimentResults,
    found: Summary,
    wishes: Iterable[FigureSpec] = (),
    look: Style = PAGE,
    kinds: Sequence[str] = (),
) -> FigureFiles:
    """The wishes, by which an author answers his question, then those of the usual ones that are no wish; `refused` are
    of wishes, and of "" where none can be drawn here. LoadError where a table is damaged."""
    wanted = [name for name in experiment.document.metrics if quantities.metric_of(name)]
    common = SharedArgument(found)
    own = list(wishes)
    if why := missing():
        return FigureFiles([], {"": why} | {spec.line: why for spec in own})
    shown = {replace(spec, name="", title="") for spec in own}
    usual = [spec for spec in USUAL if replace(spec, name="") not in shown]
    of_points: list[Job] = [partial(_bars, common, wanted, look, kinds), partial(_sweep, common, wanted, look, kinds)]
    of_runs = custom.jobs(experiment, found, [*own, *usual], look, kinds)
    done = custom.draw_all(experiment, [*of_runs[: len(own)], *of_points, *of_runs[len(own) :]])
    asked_for = zip(own, done[: len(own)], strict=True)
    return FigureFiles(
        [each for each in done if isinstance(each, Drawing)],
        {spec.line: each for spec, each in asked_for if isinstance(each, str)},
    )


def _bars(
    common: SharedArgument[Summary],
    wanted: Sequence[str],
    look: Style,
    kinds: Sequence[str],
    experiment: ExperimentResults,
) -> Drawing | None:
    found = common.value
    drawing = bars.normalised(found.points, found.normalise, experiment.varied, wanted, found.confidence, look, kinds)
    if drawing is None:
        return None
    touched = disturbance_overlap.footnote((run.number for run in found.runs), found)
    return replace(drawing, caption=drawing.caption + touched)


def _sweep(
    common: SharedArgument[Summary],
    wanted: Sequence[str],
    look: Style,
    kinds: Sequence[str],
    experiment: ExperimentResults,
) -> Drawing | None:
    """Up to four metrics against the numeric parameter with the most values, or, where there is none, against that of
    words which is compared; a line for each choice of the others."""
    found = common.value
    points = [point for point in found.points if point.runs]
    values = {name: {str(point.parameters.get(name)) for point in points} for name in experiment.varied}
    numeric = [name for name, own in values.items() if len(own) >= FEWEST_VALUES and _one_unit(own)]
    metrics = _differing(points, wanted)
    # Ratios to the reference show what is compared already.
    shown = found.normalise.by if found.normalise and any(point.normalised for point in points) else None
    compared = [name for name, own in values.items() if len(own) > 1 and not _one_unit(own) and name != shown]
    if not (numeric or compared) or not metrics:
        return None
    along = max(numeric or compared, key=lambda name: (name == COMPARED, len(values[name])))
    others = tuple(name for name in experiment.varied if name != along)
    spec = FigureSpec("metric", what=metrics[0], by=(along,), lines=others, name="sweep")
    try:
        request = Request(experiment, found, spec, look, kinds)
        return by_parameter.of_several(request, [quantities.parse(name) for name in metrics])
    except FigureError:
        return None


def _one_unit(values: Iterable[str]) -> bool:
    known = [scales.number(value) for value in values]
    return len({unit for _, unit in known}) == 1 and all(value == value for value, _ in known)


def _differing(points: Sequence[PointSummary], wanted: Sequence[str]) -> list[str]:
    """The first four metrics that are known and differ between the points: those that the scenario names, then the
    ranked ones."""
    names = [
        name
        for name in dict.fromkeys([*wanted, *RANKED])
        if len({point.metrics[name].mean for point in points if name in point.metrics}) > 1
    ]
    return names[:MOST_METRICS]
