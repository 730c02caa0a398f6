"""Requests for bulk transfers, plans for them, and the two objectives by which plans are judged. Pure.

In: volumes, time windows and largest rates of requests, and what each crosses. Out: of each plan who is accepted, when
each transfer starts and ends and at which rate, and f1 and f2. The notation is that of the eWAN paper, section V.A:
rt(r) `release_s`, dt(r) `deadline_s`, vol(r) `volume_bits`, max-rate(r) `most_bps`; ts(r), scheduled-rate(r), tf(r).

Times are seconds, rates bit/s. Volumes and rates are payload; a link counts more, by the headers of its packets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """One requested transfer. `links`: those that it crosses, with the number of bits of one bit of its payload there.

    `most_bps`: the largest rate of its payload that the application takes; infinite where it has no limit."""

    name: str
    volume_bits: float
    release_s: float = 0.0
    deadline_s: float = math.inf
    most_bps: float = math.inf
    links: Mapping[str, float] = field(default_factory=dict)

    @property
    def headers(self) -> float:
        """Bits on the path for a bit of payload: of the link that counts most."""
        return max(self.links.values(), default=1.0)


@dataclass(frozen=True)
class Problem:
    """Requests, and the capacity of each link that they cross (bit/s). `margin_s`: the time that each transfer has
    beyond its volume at its rate, for its connection and slow start."""

    requests: tuple[TransferRequest, ...]
    capacity: Mapping[str, float]
    margin_s: float = 0.0

    def alone_bps(self, request: TransferRequest) -> float:
        """The largest rate of a request's payload that its path and its application take."""
        return min([request.most_bps, *(self.capacity[link] / bits for link, bits in request.links.items())])

    def least_s(self, request: TransferRequest) -> float:
        """The shortest time that the transfer can take."""
        return request.volume_bits / self.alone_bps(request) + self.margin_s

    @cached_property
    def bottleneck(self) -> str | None:
        """The link that all requests together keep busy the longest; None where they cross none."""
        busy = {
            link: sum(each.volume_bits * each.links.get(link, 0.0) for each in self.requests) / capacity
            for link, capacity in self.capacity.items()
        }
        return max(busy, key=lambda link: busy[link], default=None)


@dataclass(frozen=True, slots=True)
class RatePeriod:
    """A rate of payload for a while."""

    begin_s: float
    end_s: float
    bps: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """A request in a plan. `spans`: its rates, none where it is refused; `why`: the reason of a refusal. `after`: the
    transfers whose ends it waits for, by name; `margin_s`: see `Problem`."""

    request: TransferRequest
    spans: tuple[RatePeriod, ...] = ()
    after: tuple[str, ...] = ()
    margin_s: float = 0.0
    why: str = ""

    @property
    def accepted(self) -> bool:
        """Return whether it is carried out: r is in A."""
        return bool(self.spans)

    @property
    def start_s(self) -> float:
        """ts(r)."""
        return self.spans[0].begin_s

    @property
    def end_s(self) -> float:
        """tf(r) = ts(r) + vol(r)/scheduled-rate(r), and the margin."""
        return self.spans[-1].end_s + self.margin_s

    @property
    def satisfied(self) -> bool:
        """satisfied(r): whether it ends in its time window."""
        return self.accepted and in_time(self.end_s, self.request.deadline_s)

    @property
    def mean_bps(self) -> float:
        """scheduled-rate(r), of payload: the mean where it varies."""
        return self.request.volume_bits / (self.spans[-1].end_s - self.spans[0].begin_s)

    @property
    def most_bps(self) -> float:
        """The largest rate of payload that it has in the plan."""
        return max(span.bps for span in self.spans)

    @property
    def steady(self) -> bool:
        """Return whether it has one rate."""
        return math.isclose(self.most_bps, self.mean_bps, rel_tol=1e-9)


def in_time(end_s: float, deadline_s: float) -> bool:
    """Return whether an end is no later than a deadline, but for the rounding of a sum."""
    return end_s <= deadline_s * (1 + 1e-12) + 1e-12


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """A transfer for each request, in their order."""

    problem: Problem
    transfers: tuple[Transfer, ...]

    @property
    def accepted(self) -> list[Transfer]:
        """A: those that are carried out."""
        return [each for each in self.transfers if each.accepted]

    @property
    def late(self) -> list[Transfer]:
        """The transfers that are carried out and end after their deadline."""
        return [each for each in self.accepted if not each.satisfied]

    @property
    def f1_s(self) -> float | None:
        """max (tf(r) − ts(r)) over A, which f1 minimises; None where no request is accepted."""
        return max((each.end_s - each.start_s for each in self.accepted), default=None)

    @property
    def least_f1_s(self) -> float | None:
        """No plan that accepts these requests has a smaller one: each takes at least its time without others."""
        return max((self.problem.least_s(each.request) for each in self.accepted), default=None)

    @property
    def f2(self) -> float | None:
        """Σ scheduled-rate(r) over A by the capacity B of the bottleneck, by the paper's formula.

        The formula adds rates whether they are used at the same time or not; `utilisation` is the value that the text
        describes."""
        link = self.problem.bottleneck
        if link is None or not self.accepted:
            return None
        rates = sum(each.mean_bps * each.request.links.get(link, 0.0) for each in self.accepted)
        return rates / self.problem.capacity[link]

    @property
    def utilisation(self) -> float | None:
        """Share of the bottleneck's capacity that is used from the first start to the last end (min ts to max tf)."""
        link = self.problem.bottleneck
        crossing = [each for each in self.accepted if link in each.request.links]
        if link is None or not crossing:
            return None
        bits = sum(each.request.volume_bits * each.request.links[link] for each in crossing)
        period_s = max(each.end_s for each in crossing) - min(each.start_s for each in crossing)
        return bits / self.problem.capacity[link] / period_s
