"""The parts that do not import each other speak of the same metrics: those of the vocabulary."""

from __future__ import annotations

import pytest

from ewan.analysis.metrics import COMPUTATIONS
from ewan.extras.suites import document, overview
from ewan.extras.suites.application import RESPONSES_IN_TIME
from ewan.extras.suites.applications import APPLICATIONS
from ewan.labs.record.metrics import METRICS


def test_scenarios_may_ask_for_what_analysis_computes() -> None:
    assert sorted(COMPUTATIONS) == sorted(METRICS)


@pytest.mark.parametrize("app", APPLICATIONS)
def test_a_suite_shows_metrics_of_the_vocabulary(app: str) -> None:
    shown = [*APPLICATIONS[app].overview, *APPLICATIONS[app].metrics, *document.NETWORK]
    unknown = [name for name in shown if name not in METRICS and name != RESPONSES_IN_TIME]
    assert not unknown, f"labs/record/metrics.py does not know {unknown}"
    assert overview.SHOWN.keys() <= METRICS.keys()
