"""Metrics by name, and figures of others: what a scenario may ask for, and what may stand beside it.

Comes in: words. Goes out: the names that analysis knows (analysis/metrics.py), and values in its units.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from generator.scenario.laws import DAY_NS
from labs.spec.source import nearest
from labs.units import Duration, Rate, UnitError, parse_volume

_OF_KIND = {"response time": "requests", "iteration time": "messages"}
METRICS = (
    "mean completion time",
    "max completion time",
    "min completion time",
    "deviation of completion time",
    "coefficient of variation",
    "incomplete transfers",
    "mean goodput",
    "aggregate goodput",
    "steady goodput",
    "fairness per flow",
    "fairness per source",
    "utilisation",
    "mean queueing delay",
    "queue loss",
    "link loss",
    "total loss",
    "retransmissions",
    "mean response time",
    "p95 response time",
    "mean iteration time",
    "start lateness p99",
    "udp loss",
    "udp jitter",
    "udp delay p50",
    "udp delay p99",
    "reverse goodput",
    "background goodput",
)


AMBIGUOUS = {
    "loss": "queue loss, link loss or total loss",
    "fairness": "fairness per flow or fairness per source",
}
"""Words that could mean several metrics."""


def _metric(value: object) -> str:
    if value in METRICS:
        return str(value)
    if isinstance(value, str) and value in AMBIGUOUS:
        raise ValueError(f"unknown metric, write {AMBIGUOUS[value]}")
    raise ValueError(f"unknown metric, {nearest(str(value), METRICS)}")


def measured(value: object) -> tuple[float, str]:
    """A figure with its unit as analysis has it: bit/s, ns, B, or a ratio, also of a percentage."""
    text = str(value)
    for parse, unit in ((Rate.parse, "bit/s"), (lambda text: Duration.parse(text, DAY_NS), "ns")):
        try:
            found = parse(text)
        except UnitError:
            continue
        return float(found.bps if isinstance(found, Rate) else found.ns), unit
    try:
        return float(parse_volume(text).bytes), "B"
    except UnitError:
        pass
    if re.fullmatch(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?%", text):
        return float(text[:-1]) / 100, ""
    if re.fullmatch(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?", text):
        return float(text), ""
    raise ValueError('write a figure like "8353.66Mbit/s", "12.5s", "0.9993" or "2.5%"')


def _figure(value: object) -> str:
    measured(value)
    return str(value)


def _title(title: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": title, "examples": list(examples)})


Metric = Annotated[str, PlainValidator(_metric), _title("metric", "mean completion time")]
FigureText = Annotated[str, PlainValidator(_figure), _title("figure", "8353.66Mbit/s", "0.9993", "2.5%")]


def needs(metric: str) -> str | None:
    """The kind of step without which no run has this metric; None: any may have it."""
    if metric.startswith("udp "):
        return "udp"
    return next((kind for words, kind in _OF_KIND.items() if metric.endswith(words)), None)
