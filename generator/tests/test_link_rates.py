"""The rate of a link between two samples is the mean that its trace, or the events of the run, let pass."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ewan.calibration.tests.plans import plan
from ewan.generator.link_rates import with_mean_rates
from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.link import Change
from ewan.labs.link.direction import Heading
from ewan.labs.link.trace import TraceOpportunities, TraceRows
from ewan.labs.record import tables
from ewan.labs.record.events import EventOutcome

ROWS = ((0, 8_000_000, None, None, None), (3 * NS_PER_MS, 80_000_000, None, None, None))


def table(*times_ms: int, rate_bps: int = 1) -> pl.DataFrame:
    rows = [
        {"link": "core", "direction": way, "time_ns": time * NS_PER_MS, "rate_bps": rate_bps}
        for time in times_ms
        for way in ("forward", "backward")
    ]
    return pl.DataFrame(rows, schema_overrides=tables.TABLES["links"])


def rates(trace: Any, *times_ms: int) -> list[int]:
    found = with_mean_rates(table(*times_ms), plan(trace=trace).links)
    return found.filter(pl.col("direction") == "backward")["rate_bps"].to_list()


@pytest.mark.parametrize(
    "period_ms, expected",
    [
        (0, [8_000_000, 44_000_000, 80_000_000]),  # the last row holds
        (4, [8_000_000, 44_000_000, 26_000_000]),  # at 4 ms it begins anew
    ],
)
def test_rows_are_integrated(period_ms: int, expected: list[int]) -> None:
    trace = TraceRows(period_ns=period_ms * NS_PER_MS, rows=ROWS)
    assert rates(trace, 2, 4, 8) == expected


def test_rows_that_leave_the_rate_as_it_is_and_outages() -> None:
    rows = (ROWS[0], (NS_PER_MS, None, 5, None, None), (2 * NS_PER_MS, 0, None, None, None))
    trace = TraceRows(period_ns=0, rows=((0, 8_000_000, 1, None, None), *rows[1:]))
    assert rates(trace, 1, 3, 5) == [8_000_000, 4_000_000, 0]


def test_opportunities_are_counted() -> None:
    trace = TraceOpportunities(opportunities=((NS_PER_MS, 1), (3 * NS_PER_MS, 2)), period_ns=4 * NS_PER_MS)
    one = 1504 * 8 * NS_PER_SECOND // (2 * NS_PER_MS)
    assert rates(trace, 2, 4, 6) == [one, 2 * one, one]


def test_other_links_keep_their_rate() -> None:
    assert with_mean_rates(table(1, 2), plan().links)["rate_bps"].unique().to_list() == [1]


def test_a_row_after_a_small_part_of_the_usual_time_keeps_the_rate_of_its_instant() -> None:
    trace = TraceRows(period_ns=0, rows=ROWS)
    table_ = table(2, 4, 6)
    last = table_.tail(2).with_columns(time_ns=pl.lit(6 * NS_PER_MS + 20_000, pl.Int64), rate_bps=pl.lit(7, pl.Int64))
    found = with_mean_rates(pl.concat([table_, last]), plan(trace=trace).links)
    rates_ = found.filter(pl.col("direction") == "forward")["rate_bps"].to_list()
    assert rates_ == [8_000_000, 44_000_000, 80_000_000, 7]


def event(at_ms: int, link: str = "core", way: Heading = "backward", **change: Any) -> EventOutcome:
    return EventOutcome(at_ms * NS_PER_MS, link, way, Change(**change), at_ms * NS_PER_MS, None)


def changed(*events: EventOutcome, trace: Any = None, times_ms: tuple[int, ...] = (0, 5, 10)) -> list[int]:
    links = plan(**({} if trace is None else {"trace": trace})).links
    found = with_mean_rates(table(*times_ms), links, events)
    return found.filter(pl.col("direction") == "backward")["rate_bps"].to_list()


def test_an_event_changes_the_rate_at_its_instant_and_not_at_the_row_before() -> None:
    rate = plan().links[0].backward.rate_bps
    assert changed(event(4, rate_bps=5_000_000))[1:] == [(4 * rate + 5_000_000) // 5, 5_000_000]
    twice = changed(event(1, rate_bps=5_000_000), event(6, rate_bps=10_000_000))
    assert twice[1:] == [(rate + 4 * 5_000_000) // 5, 9_000_000]


def test_events_that_leave_this_rate_as_it_is_change_nothing() -> None:
    unmade = replace(event(4, rate_bps=5), applied_ns=None)
    others = [event(4, ecn_bleach=True), event(4, way="forward", rate_bps=5), event(4, link="other", rate_bps=5)]
    down = replace(event(4), down=True)
    assert changed(unmade, *others, down) == [1, 1, 1]


def test_an_event_shortly_before_the_last_row_counts_for_its_time() -> None:
    rate = plan().links[0].backward.rate_bps
    assert changed(event(21, rate_bps=0), times_ms=(0, 10, 20, 22))[-1] == rate // 2


def test_a_trace_that_an_event_begins_anew() -> None:
    assert (
        changed(event(5, restart_trace=True), trace=TraceRows(period_ns=0, rows=ROWS))[1:]
        == [(3 * 8_000_000 + 2 * 80_000_000) // 5] * 2
    )
