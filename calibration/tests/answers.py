"""Answers of spinners, as tests write them."""

from __future__ import annotations

from typing import Any

from ewan.labs.base import codec
from ewan.labs.runtime.spinner_stats import SpinnerStats


def stats_of(answer: Any) -> SpinnerStats:
    return codec.from_data(SpinnerStats, answer, "stats")
