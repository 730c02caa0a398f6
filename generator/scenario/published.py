"""Metrics and figures by name, and published values: what a scenario may ask for, and what may stand beside it.

In: words of a scenario. Out: names of the vocabulary (labs/record/metrics.py), figures (labs/record/figures.py), and
values in its units.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from ewan.labs.base.units import parse_published
from ewan.labs.record import figures, quantities
from ewan.labs.record.figures import FigureSpec


def _metric(value: object) -> str:
    return str(quantities.parse(value))


def _figure(value: object) -> FigureSpec:
    if isinstance(value, str):
        return figures.parse(value)
    if isinstance(value, dict):
        return figures.from_keys(value)
    raise ValueError('write a figure, like "goodput by buffer, lines congestion"')


def _published(value: object) -> str:
    parse_published(str(value))
    return str(value)


def _title(title: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": title, "examples": list(examples)})


Metric = Annotated[str, PlainValidator(_metric), _title("metric", "mean completion time", "aggregate goodput of cross")]
FigureText = Annotated[
    FigureSpec,
    PlainValidator(_figure),
    _title("figure", "goodput by buffer, lines congestion", "{draw: cdf of rtt, name: rtt}"),
]
PublishedText = Annotated[str, PlainValidator(_published), _title("published value", "8353.66Mbit/s", "0.9993", "2.5%")]
