"""Requests of a scenario: metrics and figures by name, published values beside them, and the rule that ends repetition
with further seeds.

In: words of a scenario. Out: names of the vocabulary (labs/record/metrics.py), figures (labs/record/figures.py), and
values in its units."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ewan.labs.base.model import Model
from ewan.labs.base.units import Fraction, UnitError, parse_published
from ewan.labs.base.values import Count
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


def _confidence(value: object) -> Fraction:
    result = Fraction.parse(value)
    if not Fraction.parse("50%") <= result <= Fraction.parse("99.9%"):
        raise UnitError('a confidence is between 50% and 99.9%: write "95%"')
    return result


def _within(value: object) -> Fraction:
    result = Fraction.parse(value)
    if not result.ppb:
        raise UnitError('no number of repetitions gets there: write more than 0%, like "5%"')
    return result


def _fraction(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": "fraction", "examples": [example]})


ConfidenceText = Annotated[Fraction, PlainValidator(_confidence), _fraction("95%")]
WithinText = Annotated[Fraction, PlainValidator(_within), _fraction("5%")]


class Stop(Model):
    """Repeat with more seeds until the half width of the interval of `metric` is at most `within` of its mean."""

    metric: Metric = Field(description="whose mean over the seeds is to be known")
    within: WithinText = Field(description="half width of the confidence interval, of the mean")
    confidence: ConfidenceText = Field(Fraction.parse("95%"), description="95 % if absent")
    at_least: Annotated[int, Count(2, 10_000)] = Field(3, description="seeds; 3 if absent", examples=[3])
    at_most: Annotated[int, Count(2, 10_000)] = Field(20, description="seeds; 20 if absent", examples=[20])

    @model_validator(mode="after")
    def _order(self) -> Stop:
        if self.at_most < self.at_least:
            raise ValueError(f'write an "at_most" of {self.at_least} or more')
        return self
