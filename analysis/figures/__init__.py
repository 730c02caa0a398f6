"""The figures of an experiment.

In: an experiment and its summary. Out: drawings, those that the experiment has data for, in the order of the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analysis import disturbed, load, summary
from analysis.figures import bars, distributions, style, timelines
from analysis.figures.distributions import Sample
from analysis.figures.style import Drawing
from analysis.flows import completion_times, durations, loaded
from labs.record import disturbances
from labs.record.quantities import metric_of


def draw(experiment: load.ExperimentResults, found: Mapping[str, Any]) -> list[Drawing]:
    """LoadError where a table is damaged."""
    panels = _panels(experiment, found)
    completion, responses, iterations, lateness = _samples(experiment, panels)
    wanted = [name for name in experiment.document.metrics if metric_of(name)]
    each = [
        bars.normalised(found["points"], found["normalise"], experiment.varied, wanted),
        bars.sweep(found["points"], experiment.varied, wanted),
        timelines.goodput(panels),
        distributions.cumulative(
            "completion-cdf",
            "Distribution of completion times",
            "completion time",
            "Share of transfers that took no longer.",
            completion,
        ),
        distributions.cumulative(
            "response-cdf",
            "Distribution of response times",
            "response time",
            "Share of responses that took no longer.",
            responses,
        ),
        distributions.cumulative(
            "iteration-cdf",
            "Distribution of iteration times",
            "iteration time",
            "Share of iterations that took no longer, over ranks.",
            iterations,
        ),
        timelines.windows_of_senders(panels),
        timelines.queue(panels),
        timelines.fairness(panels),
        distributions.cumulative(
            "start-lateness",
            "Start lateness",
            "lateness",
            "From a flow's scheduled start to its first system call.",
            lateness,
        ),
    ]
    for run in experiment.runs:
        run.forget()
    touched = disturbed.footnote((run["number"] for run in found["runs"]), found)
    drawings = [drawing for drawing in each if drawing is not None]
    # What is made of whole runs cannot show the seconds in which they were disturbed: it names the runs.
    return [
        drawing if drawing.name in timelines.SHADED else replace(drawing, caption=drawing.caption + touched)
        for drawing in drawings
    ]


def _panels(experiment: load.ExperimentResults, found: Mapping[str, Any]) -> list[timelines.PointPanel]:
    """The first run of each point; of many points those that are drawn are spread over all."""
    slowest = {run["number"]: run["bottleneck"] for run in found["runs"]}
    chosen = [(point, summary.usable(runs)) for point, runs in experiment.points.items()]
    there = [(dict(point), runs[0]) for point, runs in chosen if runs]
    drawn = set(style.spread(len(there), style.MOST_PANELS))
    panels = []
    for index, (parameters, run) in enumerate(there):
        label = experiment.label(parameters)
        if run.status != "complete":
            label = f"{label} ({run.status})".strip()
        at = slowest.get(run.number)
        link = (at["link"], at["direction"]) if at else None
        watched = run.disturbances()
        out = () if watched is None else disturbances.intervals(watched[0])
        panels.append(timelines.PointPanel(label, run, link, index in drawn, out))
    return panels


def _samples(experiment: load.ExperimentResults, panels: list[timelines.PointPanel]) -> list[list[Sample]]:
    """Completion, response and iteration times and start lateness of each point, over all its seeds."""
    kinds: list[list[Sample]] = [[], [], [], []]
    for panel in panels:
        values: list[list[int]] = [[], [], [], []]
        for run in summary.usable(experiment.points[panel.run.point]):
            flows, exchanges = run.table("flows"), run.table("exchanges")
            load_flows = loaded(flows)
            values[0] += completion_times(load_flows)[0]
            values[1] += durations(load_flows, exchanges, "requests")
            values[2] += durations(load_flows, exchanges, "messages")
            values[3] += (flows["started_ns"] - flows["scheduled_ns"]).drop_nulls().to_list()
        for kind, own in zip(kinds, values, strict=True):
            kind.append(Sample(panel.label, own, panel.drawn))
    return kinds
