"""Arrivals and what is delivered in order, against cases worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from ewan.analysis import arrivals, payload
from ewan.analysis.tests.synthetic import SECOND, flow, frame

CARRIED = 1_000_000
"""Bytes that a link of 8 Mbit/s carries in a bin of a second."""


def bins(arrived: Sequence[int | None], delivered: Sequence[int], number: int = 0) -> list[dict[str, Any]]:
    """A bin a second."""
    pairs = enumerate(zip(arrived, delivered, strict=True), 1)
    return [
        {"flow": number, "part": 0, "time_ns": second * SECOND, "bin_ns": SECOND,
         "arrived_bytes": came, "delivered_bytes": given}
        for second, (came, given) in pairs
    ]  # fmt: skip


def table(*rows: list[dict[str, Any]]) -> pl.DataFrame:
    return frame("goodput", [row for each in rows for row in each])


def load(ends: float, *starts: float) -> pl.DataFrame:
    """Flows that begin so, with one end."""
    lives = [{"started_ns": int(start * SECOND), "ended_ns": int(ends * SECOND)} for start in starts]
    return frame("flows", [flow(number, received_bytes=1, **life) for number, life in enumerate(lives)])


def distinct(arrived: Sequence[int], delivered: Sequence[int], copied: int | None = None) -> list[int]:
    flows = frame("flows", [flow(0, copied_segments=copied, segment_bytes=1)])
    found: list[int] = (
        arrivals.distinct(table(bins(arrived, delivered)).lazy(), flows.lazy()).collect()["distinct_bytes"].to_list()
    )
    return found


def test_what_waits_for_a_missing_segment_counts_when_it_arrives() -> None:
    # In the second second one is missing: 9 wait until the fourth, in which 20 that arrived and 1 sent again come out.
    assert distinct([10, 9, 10, 11], [10, 0, 0, 30]) == [10, 9, 10, 11]


def test_copies_do_not_count() -> None:
    # Of 10 that arrive in each second, in the second one 4 had come before.
    assert distinct([10, 10, 10], [10, 6, 10]) == [10, 6, 10]


def test_copies_among_what_waits_are_found_when_nothing_is_missing_any_more() -> None:
    found = distinct([10, 9, 10, 11], [10, 0, 0, 27])
    assert sum(found) == 37, "all that was delivered"
    assert all(new <= came for new, came in zip(found, [10, 9, 10, 11], strict=True))
    assert min(found) >= 0


def test_what_waits_when_a_flow_is_ended_counts_as_far_as_it_is_no_copy() -> None:
    assert sum(distinct([10, 9, 9], [10, 0, 0])) == 10, "as far as anybody knows, all of it came before"
    assert distinct([10, 9, 9], [10, 0, 0], copied=0) == [10, 9, 9]
    assert sum(distinct([10, 9, 9], [10, 0, 0], copied=3)) == 25


def steady_goodput(flows: pl.DataFrame, goodput: pl.DataFrame) -> float | None:
    """The steady goodput of only these flows."""
    found = payload.together(flows, payload.bins(goodput), payload.came(flows, goodput))
    return None if found is None else payload.steady_goodput(found)


def test_a_recovery_is_not_more_than_the_link_carries() -> None:
    # Two flows share a link of 1 MB a second. One waits from before the steady part on, and gets all at once in it.
    half = CARRIED // 2
    waiting = bins([half] * 8, [half, 0, 0, 0, 0, 5 * half, half, half])
    steady = bins([half] * 8, [half] * 8, number=1)
    found = steady_goodput(load(8, 0, 0), table(waiting, steady))
    assert found == pytest.approx(8 * CARRIED)
    late = table(waiting, steady).filter(pl.col("time_ns") > 2 * SECOND)["delivered_bytes"].sum() * 8 / 6
    assert late > 8 * CARRIED, "and in order it would be"


def test_steady_goodput_leaves_the_start_and_the_flow_that_goes_on_alone() -> None:
    # Both are active from 2 to 10 s, without the first quarter from 4 s: 1 MB a second each, before and after less.
    flows = pl.concat([load(10, 0), load(12, 0, 2).tail(1)])
    sizes = [1_000_000 if 4 < second <= 10 else 10 for second in range(1, 13)]
    found = steady_goodput(flows, table(bins(sizes, sizes), bins(sizes, sizes, 1)))
    assert found == 16_000_000


def test_flows_that_tell_no_arrivals_are_shown_in_order_and_have_no_steady_goodput() -> None:
    known, unknown = bins([10, 9], [10, 9]), bins([None, None], [8, 7], number=1)
    shown = arrivals.shown(table(known, unknown))
    assert shown["bytes"].to_list() == [10, 9, 8, 7]
    assert shown["series"].to_list() == ["arrived", "arrived", "delivered in order", "delivered in order"]
    assert steady_goodput(load(2, 0, 0), table(known, unknown)) is None
    assert steady_goodput(load(2, 0), table(known)) is not None
