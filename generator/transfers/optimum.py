"""The best that any plan could do: how many requests, and in how short a period, by linear programs. Pure.

In: a problem. Out: bounds beside the plans, and the rates of a plan that reaches them. Rates may vary over time and
transfers may pause here, as no service of the paper does: no plan beats these. Between two of the instants at which a
request is released or must have ended, nothing changes: the volumes that are sent in each such interval are the
variables, each rate is constant within it. Solved by HiGHS (Huangfu and Hall 2018), as scipy has it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generator.transfers.plan import Problem, Request, Span, Transfer, TransferPlan

LONGEST_S = 20.0
"""What a search for the most requests may take; then the best that was found, and the bound, are told apart."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """`most`: how many requests can be satisfied at most; `plan`: one in which as many are, if `exact`, in the shortest
    period. Its rates are those between instants, not those of packets."""

    most: int
    plan: TransferPlan
    exact: bool


@dataclass(frozen=True, slots=True)
class _Interval:
    """A while, and what each request can send in it."""

    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


def best(problem: Problem) -> Optimum:
    """Satisfies as many requests as can be; of such plans, one whose period is the shortest."""
    chosen, most, exact = most_satisfied(problem)
    return Optimum(most, shortest(problem, chosen), exact)


def _instants(problem: Problem, requests: Sequence[Request]) -> list[float]:
    """When something begins or must have ended; the last one is late enough for all."""
    whole_s = sum(request.volume_bits / problem.alone_bps(request) for request in requests)
    last_s = max(request.release_s for request in requests) + whole_s
    known = {instant for each in requests for instant in (each.release_s, _latest_s(problem, each))}
    return sorted({instant for instant in known if instant < last_s} | {last_s})


def _latest_s(problem: Problem, request: Request) -> float:
    """When the last bit must be sent."""
    return request.deadline_s - problem.margin_s


def _intervals(instants: Sequence[float]) -> list[_Interval]:
    return [_Interval(begin, end) for begin, end in itertools.pairwise(instants) if end > begin]


def _open(problem: Problem, request: Request, interval: _Interval) -> bool:
    """Whether a request may send all the while."""
    return request.release_s <= interval.begin_s and interval.end_s <= _latest_s(problem, request) * (1 + 1e-12)


def most_satisfied(problem: Problem) -> tuple[list[Request], int, bool]:
    """The largest set of requests that can be satisfied together, how many there are at most, and whether it is known
    that there is no larger one."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # half a second, which other commands need not wait for
    from scipy.sparse import csr_array

    requests = problem.requests
    intervals = _intervals(_instants(problem, requests))
    # Variables: whether each request is satisfied; then the share of its volume sent in each interval that is open.
    pairs = [(r, k) for r, each in enumerate(requests) for k, i in enumerate(intervals) if _open(problem, each, i)]
    rows: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []
    for number in range(len(requests)):
        rows += [(len(low), len(requests) + place, 1.0) for place, (r, _) in enumerate(pairs) if r == number]
        rows.append((len(low), number, -1.0))
        low.append(0.0)
        high.append(0.0)
    for link, capacity in problem.capacity.items():
        for index, interval in enumerate(intervals):
            crossing = [(place, requests[r]) for place, (r, k) in enumerate(pairs) if k == index]
            room = capacity * interval.length_s
            rows += [
                (len(low), len(requests) + place, each.volume_bits * each.links[link] / room)
                for place, each in crossing
                if link in each.links
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


def shortest(problem: Problem, chosen: Sequence[Request]) -> TransferPlan:
    """These requests, all of them, from the first start to the last end in the shortest time, which uses the bottleneck
    best. RuntimeError where they cannot all be satisfied."""
    if not chosen:
        return TransferPlan(problem, tuple(Transfer(each, why="not satisfied") for each in problem.requests))
    intervals = _intervals(_instants(problem, chosen))
    # The period begins in one interval and ends in the same or a later one; those that could be the shortest first.
    ends = [(first, last) for first in range(len(intervals)) for last in range(first, len(intervals))]
    least = {(a, b): max(intervals[b].begin_s - intervals[a].end_s, 0.0) for a, b in ends}
    shortest_s, found = math.inf, None
    for first, last in sorted(ends, key=lambda pair: least[pair]):
        if least[first, last] >= shortest_s:
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
    problem: Problem, chosen: Sequence[Request], intervals: Sequence[_Interval], first: int, last: int
) -> tuple[float, list[list[Span]]] | None:
    """The shortest period that begins in one interval and ends in another, with the rates; None: there is none.

    Variables: how late the period begins after the first interval's begin, how late it ends after the last one's begin,
    in s; then the volume of each request in each interval, by what all of it is.
    """
    from scipy.optimize import linprog

    inside = intervals[first : last + 1]
    pairs = [(r, k) for r, each in enumerate(chosen) for k, i in enumerate(inside) if _open(problem, each, i)]
    if {r for r, _ in pairs} != set(range(len(chosen))):
        return None
    size = 2 + len(pairs)
    equal = np.zeros((len(chosen), size))
    for place, (r, _) in enumerate(pairs):
        equal[r, 2 + place] = 1.0
    # Each row: what is sent ≤ rate × the length of the interval, of which `begin` and `end` cut off a part.
    rows: list[NDArray[np.float64]] = []
    room: list[float] = []

    def within(k: int, sent: dict[int, float]) -> None:
        """Σ sent[place]·x[place], in s at the full rate, fits in the interval k."""
        row = np.zeros(size)
        for place, seconds in sent.items():
            row[2 + place] = seconds
        row[0] = 1.0 if k == 0 else 0.0
        ends_here = k == len(inside) - 1
        row[1] = -1.0 if ends_here else 0.0
        rows.append(row)
        room.append(0.0 if ends_here else inside[k].length_s)

    for place, (r, k) in enumerate(pairs):
        within(k, {place: chosen[r].volume_bits / problem.alone_bps(chosen[r])})
    for link, capacity in problem.capacity.items():
        for k in range(len(inside)):
            sent = {
                place: chosen[r].volume_bits * chosen[r].links[link] / capacity
                for place, (r, at) in enumerate(pairs)
                if at == k and link in chosen[r].links
            }
            if sent:
                within(k, sent)
    cost = np.zeros(size)
    cost[0], cost[1] = -1.0, 1.0
    bounds = [(0.0, inside[0].length_s), (0.0, inside[-1].length_s), *((0.0, 1.0) for _ in pairs)]
    done = linprog(cost, np.array(rows), np.array(room), equal, np.ones(len(chosen)), bounds, method="highs")
    if done.status != 0 or done.x is None:
        return None
    begin_s, end_s = inside[0].begin_s + float(done.x[0]), inside[-1].begin_s + float(done.x[1])
    spans: list[list[Span]] = [[] for _ in chosen]
    for place, (r, k) in enumerate(pairs):
        a, b = max(inside[k].begin_s, begin_s), min(inside[k].end_s, end_s)
        share = float(done.x[2 + place])
        if share > 1e-9 and b > a:
            spans[r].append(Span(a, b, share * chosen[r].volume_bits / (b - a)))
    return end_s - begin_s, spans
