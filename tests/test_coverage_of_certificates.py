"""How the rows of certificates are counted by the weekly check of U."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ewan.labs.base.codec import replace
from ewan.labs.record import Certificate, Row, Uncertainty
from tests.coverage_of_certificates import Coverage, counted

ROW = Row("core", "forward", "rate", "bit/s", 100.0, 100.0, 0.0, 1.0, "ok", "", Uncertainty({"clock": 0.5}, 1.0))


def certificate(*errors: float, **changes: Any) -> Certificate:
    rows = [replace(ROW, measured=100.0 + error, error=error, **changes) for error in errors]
    return cast(Certificate, SimpleNamespace(rows=rows))


def test_a_value_beyond_the_limit_by_more_than_u_is_seen() -> None:
    assert counted([certificate(0.5, -2.0, 2.0)]) == {"rate": Coverage(3, 1, 1)}
    assert counted([certificate(2.0, quantity="delay p50")]) == {"delay p50": Coverage(1, 0, 0)}


def test_rows_that_judge_nothing_are_not_counted() -> None:
    assert counted([certificate(9.0, verdict="shown")]) == {}


def test_one_row_in_twenty_may_be_uncovered() -> None:
    assert Coverage(20, 19, 0).enough and not Coverage(20, 18, 0).enough and not Coverage(20, 20, 1).enough
