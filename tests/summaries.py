"""Summaries of experiments that say no more than a test is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ewan.labs.base import codec
from ewan.labs.record.summary import Mean, PointSummary, RunSummary, Summary

Data = Mapping[str, Any]


def mean(own: Data) -> Mean:
    usual = {"low": None, "high": None, "kind": None, "deviation": None, "n": 1, "unit": "", "more_seeds": None}
    return codec.from_data(Mean, {**usual, **own}, "")


def point(own: Data) -> PointSummary:
    metrics = {name: codec.data_of(mean(each)) for name, each in own.get("metrics", {}).items()}
    normalised = {name: {"n": 1, "kind": None, **each} for name, each in own.get("normalised", {}).items()}
    usual = {"parameters": {}, "seeds": 1, "runs": [], "complete": True}
    return codec.from_data(PointSummary, {**usual, **own, "metrics": metrics, "normalised": normalised}, "")


def run(own: Data) -> RunSummary:
    metrics = {name: {"unit": "", **each} for name, each in own.get("metrics", {}).items()}
    usual = {"number": 1, "parameters": {}, "seed": 1, "status": "complete", "beyond": [], "steps": {}, "links": []}
    return codec.from_data(RunSummary, {**usual, "bottleneck": None, **own, "metrics": metrics}, "")


def summary(points: Iterable[Data] = (), runs: Iterable[Data] = (), status: str = "complete") -> Summary:
    return Summary(
        status=status,
        confidence=0.95,
        normalise=None,
        runs=tuple(map(run, runs)),
        points=tuple(map(point, points)),
        comparisons=(),
        beside=(),
    )
