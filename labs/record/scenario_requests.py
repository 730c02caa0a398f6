"""The requests of a scenario to the analysis of its runs, as experiment.json repeats them. Types only.

In: what the scenario says, with its values in the vocabulary's units. Out: the same, typed. The engine writes it,
analysis reads it. Names of metrics and lines of figures are words here: those of another version are not known in this
one.
"""

from __future__ import annotations

from ewan.labs.base.codec import Struct

Parameter = str | int
"""A value of a parameter."""
Values = dict[str, Parameter]
"""The values of parameters, by their names."""


class Reference(Struct):
    """Metrics are divided by those of the runs where the parameter `by` is `to`."""

    by: str
    to: str | int


class Comparison(Struct):
    """Runs are held against those where the parameter `by` is `to`; no `metrics`: the usual ones. `harm`: the value
    that only `to` has, and how much of it is lost.
    """

    by: str
    to: str | int
    metrics: tuple[str, ...]
    harm: bool


class PublishedValue(Struct, omit_defaults=False):
    """A published value of `metric` for the parameters `when`: `value` in `unit`, and as its `text` is written.

    `than`: it is how much more this is than at these parameters, as a share. `normalised`: a ratio to the reference.
    """

    source: str
    when: Values
    metric: str
    value: float
    unit: str = ""
    text: str = ""
    than: Values | None = None
    normalised: bool = False
    note: str = ""


class FigureRequest(Struct):
    """A figure's line, and the `name` of its files where it is not of the line (labs/record/figures.py)."""

    figure: str
    name: str = ""
