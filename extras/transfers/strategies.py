"""The two transfer services of the eWAN paper (section V.A): TS1 starts all at once, TS2 one after the other. Pure.

In: a problem. Out: a plan. TS1 accepts every request and starts it when it is released; those that run share the links
max-min fairly (Bertsekas and Gallager, Data Networks, section 6.5.2), as long-lived flows of one RTT would. TS2 takes
the requests in the order of their release; each has its path to itself and its largest rate, and is refused where it
would end after its deadline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, get_args

from ewan.extras.transfers.plan import Problem, RatePeriod, Transfer, TransferPlan, TransferRequest, in_time

Strategy = Literal["ts1", "ts2"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

TITLES: Mapping[Strategy, str] = {"ts1": "TS1, all at once", "ts2": "TS2, one after the other"}


ROUNDING = 1e-9
"""The share of a volume that is rounding: so little left over by floating-point arithmetic is no payload."""


def plan(problem: Problem, strategy: Strategy) -> TransferPlan:
    """The plan of a service, with its promise for each request."""
    strategies: Mapping[Strategy, Callable[[Problem], TransferPlan]] = {"ts1": at_once, "ts2": one_after_another}
    return strategies[strategy](problem)


def fair_shares(requests: Iterable[TransferRequest], capacity: Mapping[str, float]) -> dict[str, float]:
    """Max-min fair rates of payload (bit/s) of requests that run together, by name."""
    left = dict(capacity)
    rising = {request.name: request for request in requests}
    rates: dict[str, float] = {}
    while rising:
        taken: dict[str, float] = {}
        for request in rising.values():
            for link, bits in request.links.items():
                taken[link] = taken.get(link, 0.0) + bits
        full_at = {link: left[link] / bits for link, bits in taken.items()}
        level = min([*full_at.values(), *(request.most_bps for request in rising.values())])
        full = {link for link, at in full_at.items() if at <= level * (1 + 1e-12)}
        stops = [each for each in rising.values() if each.most_bps <= level or full & each.links.keys()]
        for request in stops:
            rates[request.name] = level
            del rising[request.name]
            for link, bits in request.links.items():
                left[link] = max(left[link] - level * bits, 0.0)
    return rates


def at_once(problem: Problem) -> TransferPlan:
    """TS1."""
    coming = sorted(problem.requests, key=lambda request: request.release_s)
    left_bits: dict[str, float] = {}
    running: dict[str, TransferRequest] = {}
    spans: dict[str, list[RatePeriod]] = {request.name: [] for request in coming}
    now_s = 0.0
    while coming or running:
        if not running:
            now_s = coming[0].release_s
        while coming and coming[0].release_s <= now_s:
            request = coming.pop(0)
            running[request.name], left_bits[request.name] = request, request.volume_bits
        rates = fair_shares(running.values(), problem.capacity)
        until_s = min(now_s + left_bits[name] / rate for name, rate in rates.items())
        until_s = min(until_s, coming[0].release_s if coming else math.inf)
        for name, rate in rates.items():
            _extend(spans[name], RatePeriod(now_s, until_s, rate))
            left_bits[name] -= rate * (until_s - now_s)
            if left_bits[name] <= ROUNDING * running[name].volume_bits:
                del running[name]
        now_s = until_s
    transfers = (Transfer(each, tuple(spans[each.name]), margin_s=problem.margin_s) for each in problem.requests)
    return TransferPlan(problem, tuple(transfers))


def _extend(spans: list[RatePeriod], span: RatePeriod) -> None:
    """One span for as long as the rate stays the same."""
    if spans and math.isclose(spans[-1].bps, span.bps, rel_tol=1e-12):
        span = RatePeriod(spans.pop().begin_s, span.end_s, span.bps)
    if span.end_s > span.begin_s:
        spans.append(span)


def one_after_another(problem: Problem) -> TransferPlan:
    """TS2. Those that share no link do not wait for each other."""
    before: list[Transfer] = []
    found: dict[str, Transfer] = {}
    for request in sorted(problem.requests, key=lambda request: request.release_s):
        in_the_way = [each for each in before if each.request.links.keys() & request.links.keys()]
        start_s = max([request.release_s, *(each.end_s for each in in_the_way)])
        rate = problem.alone_bps(request)
        span = RatePeriod(start_s, start_s + request.volume_bits / rate, rate)
        # Of those in the way, only those that end when it starts: the others have ended by then.
        waits = tuple(each.request.name for each in in_the_way if each.end_s >= start_s > request.release_s)
        transfer = Transfer(request, (span,), waits, problem.margin_s)
        if in_time(transfer.end_s, request.deadline_s):
            before.append(transfer)
        else:
            transfer = Transfer(request, why=f"it would end at {transfer.end_s:.4g} s")
        found[request.name] = transfer
    return TransferPlan(problem, tuple(found[request.name] for request in problem.requests))
