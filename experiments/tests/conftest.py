"""Fixtures of the tests of experiments: the runs that were made, while they are prepared and executed."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the runs that have been scheduled, in order."""
    numbers: list[int] = []
    module = __import__("ewan.generator.scenario.schedule", fromlist=["schedule"])
    whole = module.schedule

    def counted(run: Any, plan: Any, clock: Any) -> Any:
        numbers.append(run.number)
        return whole(run, plan, clock)

    monkeypatch.setattr(module, "schedule", counted)
    return numbers
