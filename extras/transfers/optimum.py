"""The best that any plan could do: how many requests, and in how short a period, by linear programs. Pure.

In: a problem. Out: bounds beside the plans, and the rates of a plan that reaches them. Rates may vary over time and
transfers may pause here, as no service of the paper does: no plan beats these. Between two of the instants at which a
request is released or must have ended, nothing changes: the volumes that are sent in each such interval are the
variables, each rate is constant within it. Solved by HiGHS (Huangfu and Hall 2018), as scipy has it.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ewan.extras.transfers.plan import Problem, RatePeriod, Transfer, TransferPlan, TransferRequest
from ewan.labs.base import optional

LONGEST_S = 20.0
"""The longest time of a search for the most requests; then the best plan found, and the bound, are reported
separately."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """`most`: how many requests can be satisfied at most; `plan`: one in which as many are, if `exact`, in the shortest
    period. Its rates are those between instants, not those of packets."""

    most: int
    plan: TransferPlan
    exact: bool


@dataclass(frozen=True, slots=True)
class _Interval:
    """An interval of time."""

    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


def best(problem: Problem) -> Optimum:
    """Satisfies as many requests as can be; of such plans, one whose period is the shortest."""
    chosen, most, exact = most_satisfied(problem)
    return Optimum(most, shortest(problem, chosen), exact)


def _instants(problem: Problem, requests: Sequence[TransferRequest]) -> list[float]:
    """The instants at which a transfer begins or must have ended; the last one is late enough for all."""
    whole_s = sum(request.volume_bits / problem.alone_bps(request) for request in requests)
    last_s = max(request.release_s for request in requests) + whole_s
    known = {instant for each in requests for instant in (each.release_s, _latest_s(problem, each))}
    return sorted({instant for instant in known if instant < last_s} | {last_s})


def _latest_s(problem: Problem, request: TransferRequest) -> float:
    """The instant at which the last bit must be sent."""
    return request.deadline_s - problem.margin_s


def _intervals(instants: Sequence[float]) -> list[_Interval]:
    return [_Interval(begin, end) for begin, end in itertools.pairwise(instants) if end > begin]


def _open(problem: Problem, request: TransferRequest, interval: _Interval) -> bool:
    """Return whether a request may send during the whole interval."""
    return request.release_s <= interval.begin_s and interval.end_s <= _latest_s(problem, request) * (1 + 1e-12)


def _crossing(
    requests: Sequence[TransferRequest], pairs: Sequence[tuple[int, int]]
) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """For each link and interval, the places of the pairs (request, interval) that may send there then, with the
    request's number."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for place, (r, k) in enumerate(pairs):
        for link in requests[r].links:
            found[link, k].append((place, r))
    return found


def most_satisfied(problem: Problem) -> tuple[list[TransferRequest], int, bool]:
    """The largest set of requests that can be satisfied together, how many there are at most, and whether it is known
    that there is no larger one."""
    with optional.wanted("the optimal plan needs", "report"):
        from scipy.optimize import (  # half a second, which other commands need not wait for
            Bounds,
            LinearConstraint,
            milp,
        )
        from scipy.sparse import csr_array

    requests = problem.requests
    intervals = _intervals(_instants(problem, requests))
    # Variables: whether each request is satisfied; then the share of its volume sent in each interval that is open.
    pairs = [(r, k) for r, each in enumerate(requests) for k, i in enumerate(intervals) if _open(problem, each, i)]
    rows: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []
    rows += [(number, number, -1.0) for number in range(len(requests))]
    rows += [(r, len(requests) + place, 1.0) for place, (r, _) in enumerate(pairs)]
    low += [0.0] * len(requests)
    high += [0.0] * len(requests)
    for (link, k), crossing in _crossing(requests, pairs).items():
        room = problem.capacity[link] * intervals[k].length_s
        rows += [
            (len(low), len(requests) + place, requests[r].volume_bits * requests[r].links[link] / room)
            for place, r in crossing
        ]
        low.append(-math.inf)
        high.append(1.0)
    line, column, value = (np.array(part) for part in zip(*rows, strict=True))
    matrix = csr_array((value, (line, column)), shape=(len(low), len(requests) + len(pairs)))
    shares = [problem.alone_bps(requests[r]) * intervals[k].length_s / requests[r].volume_bits for r, k in pairs]
    done = milp(
        np.concatenate([-np.ones(len(requests)), np.zeros(len(pairs))]),
        integrality=np.concatenate([np.ones(len(requests)), np.zeros(len(pairs))]),
        bounds=Bounds(0.0, np.array([*np.ones(len(requests)), *np.minimum(shares, 1.0)])),
        constraints=LinearConstraint(matrix, np.array(low), np.array(high)),
        options={"time_limit": LONGEST_S},
    )
    if done.x is None:
        return [], len(requests), False
    chosen = [request for request, taken in zip(requests, done.x, strict=False) if taken > 0.5]
    exact = done.status == 0
    return chosen, len(chosen) if exact else math.floor(-done.mip_dual_bound + 1e-6), exact


def shortest(problem: Problem, chosen: Sequence[TransferRequest]) -> TransferPlan:
    """These requests, all of them, from the first start to the last end in the shortest time, which uses the bottleneck
    best. RuntimeError where they cannot all be satisfied."""
    if not chosen:
        return TransferPlan(problem, tuple(Transfer(each, why="not satisfied") for each in problem.requests))
    intervals = _intervals(_instants(problem, chosen))
    # No period is shorter than a transfer takes without others, or than a link needs for all that crosses it.
    busy = (
        sum(each.volume_bits * each.links.get(link, 0.0) for each in chosen) / capacity
        for link, capacity in problem.capacity.items()
    )
    least_s = max([*busy, *(each.volume_bits / problem.alone_bps(each) for each in chosen)])
    # It begins in one interval and ends in the same or a later one, which together have room for that; those that could
    # be the shortest first.
    ends = [
        (max(intervals[last].begin_s - intervals[first].end_s, least_s), first, last)
        for first in range(len(intervals))
        for last in range(first, len(intervals))
        if (intervals[last].end_s - intervals[first].begin_s) * (1 + 1e-9) >= least_s
    ]
    shortest_s, found = math.inf, None
    for bound_s, first, last in sorted(ends):
        if bound_s >= shortest_s * (1 - 1e-12):
            break
        tried = _within(problem, chosen, intervals, first, last)
        if tried is not None and tried[0] < shortest_s * (1 - 1e-12):
            shortest_s, found = tried
    if found is None:
        raise RuntimeError("these requests cannot all be satisfied")
    names = {request.name: spans for request, spans in zip(chosen, found, strict=True)}
    return TransferPlan(
        problem,
        tuple(
            Transfer(each, tuple(names[each.name]), margin_s=problem.margin_s)
            if each.name in names
            else Transfer(each, why="not satisfied")
            for each in problem.requests
        ),
    )


def _within(
    problem: Problem, chosen: Sequence[TransferRequest], intervals: Sequence[_Interval], first: int, last: int
) -> tuple[float, list[list[RatePeriod]]] | None:
    """The shortest period that begins in one interval and ends in another, with the rates; None: there is none.

    Variables: how late the period begins after the first interval's begin, how late it ends after the last one's begin,
    in s; then the volume of each request in each interval, by what all of it is.
    """
    with optional.wanted("the optimal plan needs", "report"):
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

    inside = intervals[first : last + 1]
    pairs = [(r, k) for r, each in enumerate(chosen) for k, i in enumerate(inside) if _open(problem, each, i)]
    if {r for r, _ in pairs} != set(range(len(chosen))):
        return None
    # How long each pair takes at the full rate of its request, in s.
    takes_s = [chosen[r].volume_bits / problem.alone_bps(chosen[r]) for r, _ in pairs]
    rows: list[tuple[int, int, float]] = []
    room: list[float] = []

    def within(k: int, sent: Sequence[tuple[int, float]]) -> None:
        """Adds the bound that the transfers, by place the time that all of each would take, fit in the interval k, of
        which the period's begin and end cut off a part."""
        rows.extend((len(room), 2 + place, seconds) for place, seconds in sent)
        if k == 0:
            rows.append((len(room), 0, 1.0))
        ends_here = k == len(inside) - 1
        if ends_here:
            rows.append((len(room), 1, -1.0))
        room.append(0.0 if ends_here else inside[k].length_s)

    for place, (_, k) in enumerate(pairs):
        if k in (0, len(inside) - 1):  # else it is a bound
            within(k, [(place, takes_s[place])])
    for (link, k), crossing in _crossing(chosen, pairs).items():
        capacity = problem.capacity[link]
        within(k, [(place, chosen[r].volume_bits * chosen[r].links[link] / capacity) for place, r in crossing])
    line, column, value = (np.array(part) for part in zip(*rows, strict=True))
    size = 2 + len(pairs)
    fits = csr_array((value, (line, column)), shape=(len(room), size))
    places = np.arange(2, size)
    whole = csr_array((np.ones(len(pairs)), (np.array([r for r, _ in pairs]), places)), shape=(len(chosen), size))
    cost = np.zeros(size)
    cost[0], cost[1] = -1.0, 1.0
    most = (min(inside[k].length_s / takes_s[place], 1.0) for place, (_, k) in enumerate(pairs))
    done = milp(  # without an integer among the variables
        cost,
        bounds=Bounds(0.0, np.array([inside[0].length_s, inside[-1].length_s, *most])),
        constraints=[LinearConstraint(fits, -math.inf, np.array(room)), LinearConstraint(whole, 1.0, 1.0)],
    )
    if done.status != 0 or done.x is None:
        return None
    begin_s, end_s = inside[0].begin_s + float(done.x[0]), inside[-1].begin_s + float(done.x[1])
    spans: list[list[RatePeriod]] = [[] for _ in chosen]
    for place, (r, k) in enumerate(pairs):
        a, b = max(inside[k].begin_s, begin_s), min(inside[k].end_s, end_s)
        share = float(done.x[2 + place])
        if share > 1e-9 and b > a:
            spans[r].append(RatePeriod(a, b, share * chosen[r].volume_bits / (b - a)))
    return end_s - begin_s, spans
