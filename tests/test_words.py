"""What scenarios may ask for is what analysis can say: the two parts do not import each other."""

from __future__ import annotations

from analysis.metrics import METRICS
from generator.scenario import figures


def test_scenarios_and_analysis_know_the_same_metrics() -> None:
    assert list(figures.METRICS) == list(METRICS)
