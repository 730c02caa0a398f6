"""Transfer services: accepted requests, their times and rates; f1 and f2; the bounds of any plan. Hand-computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as drawn

from ewan.extras.transfers import optimum
from ewan.extras.transfers.plan import Problem, TransferPlan, TransferRequest
from ewan.extras.transfers.strategies import STRATEGIES, at_once, fair_shares, one_after_another, plan

ONE = {"link": 1.0}


def problem(*requests: TransferRequest, margin_s: float = 0.0, **capacity: float) -> Problem:
    """Requests of one link of 10 bit/s, unless others are given."""
    return Problem(requests, capacity or {"link": 10.0}, margin_s)


def spans(found: TransferPlan) -> dict[str, list[tuple[float, float, float]]]:
    return {
        each.request.name: [(span.begin_s, span.end_s, span.bps) for span in each.spans] for each in found.transfers
    }


# Section V.A of the paper: two requests of one volume over an access link, both released at 0.
PAPER = problem(
    *(TransferRequest(name, 4e9, deadline_s=60.0, most_bps=1e9, links={"access": 1.0}) for name in ("r1", "r2")),
    access=1e9,
)


def test_the_services_of_the_paper_do_what_its_authors_expect() -> None:
    """TS1 gives 500 Mbit/s to each, TS2 1 Gbit/s to each; TS2 has the smaller f1, and no plan a smaller one."""
    first, second = at_once(PAPER), one_after_another(PAPER)
    assert spans(first) == {"r1": [(0, 8, 5e8)], "r2": [(0, 8, 5e8)]}
    assert spans(second) == {"r1": [(0, 4, 1e9)], "r2": [(4, 8, 1e9)]}
    assert (first.f1_s, second.f1_s, second.least_f1_s) == (8, 4, 4)
    # The formula adds rates that are used at different times; the link is busy all the while in both.
    assert (first.f2, second.f2) == (1, 2)
    assert first.utilisation == second.utilisation == 1
    assert [each.after for each in second.transfers] == [(), ("r1",)]
    best = optimum.best(PAPER)
    assert (best.most, best.exact) == (2, True)
    assert best.plan.utilisation == pytest.approx(1)


def test_what_the_paper_writes_cannot_be_done_in_its_time_window() -> None:
    """500 GBytes take 4000 s at 1 Gbit/s, and the deadline is at 60 s."""
    request = TransferRequest("r1", 500e9 * 8, deadline_s=60.0, most_bps=1e9, links={"access": 1.0})
    asked = problem(request, access=1e9)
    assert [each.satisfied for each in at_once(asked).transfers] == [False]
    refused = one_after_another(asked)
    assert (refused.accepted, refused.f1_s, refused.f2) == ([], None, None)
    assert refused.transfers[0].why == "it would end at 4000 s"
    assert optimum.best(asked).most == 0


def test_shares_are_max_min_fair() -> None:
    slow = TransferRequest("slow", 1, most_bps=2.0, links=ONE)
    others = (TransferRequest(name, 1, links=ONE) for name in ("b", "c"))
    assert fair_shares([slow, *others], {"link": 10.0}) == {"slow": 2, "b": 4, "c": 4}
    both = TransferRequest("both", 1, links={"wide": 1.0, "thin": 1.0})
    wide, thin = TransferRequest("wide", 1, links={"wide": 1.0}), TransferRequest("thin", 1, links={"thin": 1.0})
    assert fair_shares([wide, both, thin], {"wide": 10.0, "thin": 4.0}) == {"wide": 8, "both": 2, "thin": 2}
    # Headers: 1.25 bits of the link for a bit of payload.
    assert fair_shares([TransferRequest("a", 1, links={"link": 1.25})], {"link": 10.0}) == {"a": 8}


def test_ts1_gives_new_shares_whenever_somebody_comes_or_ends() -> None:
    found = at_once(
        problem(TransferRequest("long", 100, links=ONE), TransferRequest("short", 50, release_s=4, links=ONE))
    )
    assert spans(found) == {"long": [(0, 4, 10), (4, 14, 5), (14, 15, 10)], "short": [(4, 14, 5)]}
    long, short = found.transfers
    assert long.mean_bps == pytest.approx(100 / 15)
    assert (long.most_bps, long.steady, short.steady) == (10, False, True)
    assert (found.f1_s, found.utilisation) == (15, 1)


def test_ts2_goes_by_the_release_and_refuses_what_ends_too_late() -> None:
    found = one_after_another(
        problem(
            TransferRequest("last", 30, release_s=2, deadline_s=9, links=ONE),
            TransferRequest("first", 50, links=ONE),
            TransferRequest("between", 50, release_s=1, deadline_s=9, links=ONE),
        )
    )
    last, first, between = found.transfers
    assert (first.start_s, first.end_s) == (0, 5)
    assert not between.accepted and between.why == "it would end at 10 s"
    assert (last.start_s, last.end_s, last.after) == (5, 8, ("first",))
    # Of those that are carried out: 80 bits in 8 s.
    assert found.utilisation == 1


def test_transfers_over_different_links_do_not_wait_and_a_margin_is_added_to_each() -> None:
    found = one_after_another(
        problem(
            TransferRequest("a", 50, links={"x": 1.0}),
            TransferRequest("b", 40, links={"y": 1.0}),
            TransferRequest("c", 10, links={"x": 1.0, "y": 1.0}),
            TransferRequest("d", 10, release_s=20, links={"x": 1.0}),
            margin_s=0.5,
            x=10.0,
            y=10.0,
        )
    )
    a, b, c, d = found.transfers
    assert [(each.start_s, each.end_s) for each in (a, b, c, d)] == [(0, 5.5), (0, 4.5), (5.5, 7), (20, 21.5)]
    # It follows the one that ends last; no other is in the way of the last one any more.
    assert (c.after, d.after) == (("a",), ())


def test_the_best_plan_satisfies_what_neither_service_does() -> None:
    """A long transfer that may pause lets an urgent one pass."""
    asked = problem(
        TransferRequest("long", 80, deadline_s=20, links=ONE), TransferRequest("urgent", 40, 1.0, 5.0, links=ONE)
    )
    assert [each.satisfied for each in at_once(asked).transfers] == [True, False]
    assert [each.satisfied for each in one_after_another(asked).transfers] == [True, False]
    best = optimum.best(asked)
    assert (best.most, best.exact) == (2, True)
    urgent = best.plan.transfers[1]
    assert [urgent.start_s, urgent.end_s, urgent.most_bps] == pytest.approx([1, 5, 10])
    assert best.plan.utilisation == pytest.approx(1)  # 120 bits in 12 s


def test_no_more_are_satisfied_than_the_link_carries() -> None:
    asked = problem(*(TransferRequest(name, 40, deadline_s=10, links=ONE) for name in "abc"))
    best = optimum.best(asked)
    assert (best.most, sum(each.satisfied for each in best.plan.transfers)) == (2, 2)


def test_a_later_start_can_make_the_period_shorter() -> None:
    asked = problem(
        TransferRequest("early", 10, 0.0, 20.0, links=ONE), TransferRequest("late", 10, 10.0, 20.0, links=ONE)
    )
    found = optimum.shortest(asked, asked.requests)
    period = max(each.end_s for each in found.accepted) - min(each.start_s for each in found.accepted)
    assert period == pytest.approx(2)
    with pytest.raises(RuntimeError, match="cannot all be satisfied"):
        optimum.shortest(asked, [TransferRequest("x", 300, 0.0, 20.0, links=ONE)])


@drawn.composite
def problems(draw: drawn.DrawFn) -> Problem:
    """One to five requests over two links."""
    requests = []
    for number in range(draw(drawn.integers(1, 5))):
        release = draw(drawn.integers(0, 8))
        links = draw(drawn.sampled_from([("x",), ("y",), ("x", "y")]))
        most = draw(drawn.sampled_from([3.0, 7.0, math.inf]))
        deadline = release + draw(drawn.sampled_from([5.0, 9.0, math.inf]))
        volume = draw(drawn.integers(1, 60))
        requests.append(TransferRequest(f"r{number}", volume, release, deadline, most, dict.fromkeys(links, 1.0)))
    return problem(*requests, x=10.0, y=6.0)


def _over(found: TransferPlan) -> Iterator[tuple[str, float, float]]:
    """Links, instants within the plan, and the load of the link then."""
    instants = {span.begin_s for each in found.accepted for span in each.spans}
    for link in found.problem.capacity:
        for at in instants:
            rates = [
                span.bps
                for each in found.accepted
                if link in each.request.links
                for span in each.spans
                if span.begin_s <= at + 1e-9 < span.end_s
            ]
            yield link, at, sum(rates)


@settings(max_examples=25, deadline=None)
@given(problems())
def test_every_plan_keeps_to_capacities_and_windows_and_none_beats_the_best(asked: Problem) -> None:
    best = optimum.best(asked)
    plans = [*(plan(asked, strategy) for strategy in STRATEGIES), best.plan]
    for found in plans:
        for link, at, rate in _over(found):
            assert rate <= asked.capacity[link] * (1 + 1e-6), (link, at, rate)
        for each in found.accepted:
            sent = sum(span.bps * (span.end_s - span.begin_s) for span in each.spans)
            assert sent == pytest.approx(each.request.volume_bits, rel=1e-6)
            assert each.start_s >= each.request.release_s - 1e-9
            assert each.most_bps <= asked.alone_bps(each.request) * (1 + 1e-6)
        assert sum(each.satisfied for each in found.transfers) <= best.most
        if found.accepted:
            assert found.f1_s is not None and found.least_f1_s is not None
            assert found.f1_s >= found.least_f1_s * (1 - 1e-9)
    # TS2 accepts nothing that ends too late; TS1 refuses nothing.
    assert all(each.satisfied for each in plans[1].accepted)
    assert len(plans[0].accepted) == len(asked.requests)
    if best.exact and best.most == len(asked.requests):
        whole = max(each.end_s for each in best.plan.accepted) - min(each.start_s for each in best.plan.accepted)
        for found in plans[:2]:
            if all(each.satisfied for each in found.transfers):
                took = max(each.end_s for each in found.accepted) - min(each.start_s for each in found.accepted)
                assert whole <= took * (1 + 1e-6)
