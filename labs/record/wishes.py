"""What a scenario asks of the analysis of its runs, as experiment.json repeats it. Types only.

In: what the scenario says, with its values in the vocabulary's units. Out: the same, typed. The engine writes it,
analysis reads it. Names of metrics and lines of figures are words here: those of another version are not known in this
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ewan.labs.record import STRICT

Values = dict[str, str | int]
"""Of parameters, by their names."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Metrics are divided by those of the runs where the parameter `by` is `to`."""

    __pydantic_config__: ClassVar = STRICT
    by: str
    to: str | int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs are held against those where the parameter `by` is `to`; no `metrics`: the usual ones. `harm`: what `to` has
    alone, and how much of it is lost."""

    __pydantic_config__: ClassVar = STRICT
    by: str
    to: str | int
    metrics: tuple[str, ...]
    harm: bool


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """A published value of `metric` for the parameters `when`: `value` in `unit`, and as its `text` is written.

    `than`: it is how much more this is than at these parameters, as a share. `normalised`: a ratio to the reference.
    """

    __pydantic_config__: ClassVar = STRICT
    source: str
    when: Values
    metric: str
    value: float
    unit: str = ""
    text: str = ""
    than: Values | None = None
    normalised: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class AskedFigure:
    """A figure's line, and the `name` of its files where it is not of the line (labs/record/figures.py)."""

    __pydantic_config__: ClassVar = STRICT
    SPARSE: ClassVar = {"name"}
    figure: str
    name: str = ""
