"""The envelope: what this host's links can be trusted with, of any rate, delay, packet size and number. Pure.

In: the points that calibration measured (`Frontier`: the most packets per second that a number of links of one back end
carried within their tolerances), and what is asked for (`LinkDemand`). Out: inside or outside, by how much, with which
back end, and which figure says so (`Prediction`).

Between two points a packet's cost in time is taken as linear in its size, and in the logarithm of the number of links;
beyond the last point it continues with the same slope. What is asked for is inside when the host carries `MARGIN` more.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ewan.labs.base.codec import Struct
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.link import Framing

WIRE = Framing(38, 84)
"""The default of a description: headers, checksum, preamble and gap of Ethernet (docs/reference/description.md)."""
MARGIN = 0.1
"""The host must carry so much more than is asked for: what it carried when it was measured, it may not carry again."""

Limit = Literal["probe", "rate", "lateness", "drops", "none"]
"""The limit that was reached first beyond a frontier: the probe could not offer more, the rate was short, packets left
late, packets found no room; `none`: no limit was reached up to the highest load."""
LIMIT_WORDS: dict[Limit, str] = {
    "probe": "no program here could offer more",
    "rate": "the link fell behind its rate beyond it",
    "lateness": "packets left more than 500 us late beyond it",
    "drops": "packets found no room at the link beyond it",
    "none": "nothing broke up to there",
}


class LoadLateness(Struct):
    """The lateness of every packet of links that carried `load_ratio` of their capacity. For a link that counts it,
    these are its own release errors: due against handed over. For another back end (`own` is false) it is the one-way
    delay less the configured one, which includes the path through the network stacks.
    """

    load_ratio: float
    packets: int
    own: bool
    error_p50_ns: float
    error_p99_ns: float
    error_p999_ns: float
    error_max_ns: float
    lost_packets: int
    reordered_packets: int


class Frontier(Struct):
    """The most that so many links, loaded at once in one direction, carried within their tolerances."""

    backend: str
    packet_bytes: int
    """The size of an IP packet."""
    links: int
    packets_per_s: float
    """The packet rate of all links together."""
    limit: Limit
    rate_error_ratio: float
    """The rate error of the link that was furthest off, at the frontier."""
    loads: tuple[LoadLateness, ...]


@dataclass(frozen=True, slots=True)
class LinkDemand:
    """The load that links are to carry: `links` of them, each at its rate at once in one direction, with packets of one
    size."""

    rate_bps: int
    delay_ns: int = 0
    packet_bytes: int = 1500
    """The size of an IP packet."""
    links: int = 1
    framing: Framing = WIRE
    backend: str | None = None
    """None: whichever carries most."""

    @property
    def packets_per_s(self) -> float:
        """The packet rate of all links together."""
        framed = max(self.packet_bytes + self.framing.overhead_bytes, self.framing.minimum_bytes)
        return self.links * self.rate_bps / (framed * BITS_PER_BYTE)

    @property
    def memory_bytes(self) -> float:
        """The memory that the delay lines hold when they are full."""
        return self.links * self.rate_bps * self.delay_ns / (BITS_PER_BYTE * NS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction whether a host carries a demand. `share` is the demand divided by the host's capacity, margin
    included."""

    inside: bool
    backend: str
    asked_packets_per_s: float
    carried_packets_per_s: float
    share: float
    delay_error_p50_ns: float | None
    delay_error_p99_ns: float | None
    """The link's own, expected at that load; None where it was not measured."""
    why: str


class NoEnvelopeError(LookupError):
    """There is no measurement that tells, in one line."""


def carried(frontiers: Iterable[Frontier], backend: str, packet_bytes: int, links: int) -> float:
    """The most packets per second of so many links of a back end together; NoEnvelopeError where none was measured."""
    points: dict[int, dict[int, float]] = {}
    for each in frontiers:
        if each.backend == backend and each.packets_per_s > 0:
            points.setdefault(each.links, {})[each.packet_bytes] = NS_PER_SECOND / each.packets_per_s
    if not points:
        raise NoEnvelopeError(f"links of the back end {backend} were not measured on this host")

    def cost_ns(of_size: dict[int, float]) -> float:
        return _between(sorted(of_size.items()), float(packet_bytes), float)

    by_links = sorted((count, cost_ns(of_size)) for count, of_size in points.items())
    return NS_PER_SECOND / _between(by_links, float(links), math.log)


def _between(points: Sequence[tuple[int, float]], at: float, scale: Callable[[float], float]) -> float:
    """Linear in `scale` between two points, and beyond the last one as steep as before, at least level; below the first
    one as at the first."""
    if at <= points[0][0] or len(points) == 1:
        return points[0][1]
    index = min(bisect.bisect_left([x for x, _ in points], at), len(points) - 1)
    (x0, y0), (x1, y1) = points[index - 1], points[index]
    slope = (y1 - y0) / (scale(x1) - scale(x0))
    if at > x1:
        return y1 + max(slope, 0.0) * (scale(at) - scale(x1))
    return y0 + slope * (scale(at) - scale(x0))


def predict(frontiers: Sequence[Frontier], demand: LinkDemand, memory_bytes: float = math.inf) -> Prediction:
    """Predict whether the host carries a demand, by the back end that it names, or else by the one with the highest
    capacity. `memory_bytes`: free memory. NoEnvelopeError if nothing was measured that can tell.
    """
    backends = [demand.backend] if demand.backend else best_first(frontiers, demand.packet_bytes, demand.links)
    if not backends:
        raise NoEnvelopeError("no links were measured on this host: ewan measure host does it, as root")
    backend = backends[0]
    most = carried(frontiers, backend, demand.packet_bytes, demand.links)
    asked = demand.packets_per_s
    share = asked * (1 + MARGIN) / most
    full = demand.memory_bytes > memory_bytes
    late = _expected(frontiers, backend, demand, min(asked / most, 1.0))
    near = _nearest(frontiers, backend, demand)
    load = f"{asked:,.0f} packets/s of {demand.packet_bytes} bytes"
    holds = f"{demand.links} {'link carries' if demand.links == 1 else 'links carry'} {most:,.0f} here"
    if full:
        held, free = about(demand.memory_bytes, "size", 3), about(memory_bytes, "size", 3)
        why = f"{held} would be in flight, and {free} of memory are free"
    elif share <= 1:
        why = f"{load} are asked for, {holds} ({share:.0%} with a margin of {MARGIN:.0%})"
    else:
        why = f"{load} are asked for, {holds} (margin {MARGIN:.0%}): {LIMIT_WORDS[near.limit]}"
    p50, p99 = late if late else (None, None)
    return Prediction(share <= 1 and not full, backend, asked, most, share, p50, p99, why)


def best_first(frontiers: Iterable[Frontier], packet_bytes: int, links: int) -> list[str]:
    """Back ends by what they carry, the most first; equal ones in the order in which they were measured."""
    known = list(frontiers)
    names = list(dict.fromkeys(each.backend for each in known))
    return sorted(names, key=lambda name: -carried(known, name, packet_bytes, links))


def preferred(frontiers: Sequence[Frontier]) -> Literal["user", "kernel"]:
    """The back end that `emulator: auto` takes. It is the kernel's links if they carry more than ours wherever both
    were measured, by more than the margin, and are no later; otherwise our own."""
    own, other = ({(e.packet_bytes, e.links): e for e in frontiers if e.backend == name} for name in ("user", "kernel"))
    both = own.keys() & other.keys()
    if not both:
        return "user"
    more = all(other[point].packets_per_s > (1 + MARGIN) * own[point].packets_per_s for point in both)
    late = [(other[point].loads, own[point].loads) for point in both]
    exact = all(theirs and ours and theirs[-1].error_p99_ns <= ours[-1].error_p99_ns for theirs, ours in late)
    return "kernel" if more and exact else "user"


def fastest(frontiers: Sequence[Frontier], demand: LinkDemand) -> int:
    """The highest rate at which links of this size and number are inside (bit/s, each)."""
    one = LinkDemand(1, 0, demand.packet_bytes, demand.links, demand.framing).packets_per_s
    backend = demand.backend or best_first(frontiers, demand.packet_bytes, demand.links)[0]
    return math.floor(carried(frontiers, backend, demand.packet_bytes, demand.links) / (1 + MARGIN) / one)


def _nearest(frontiers: Sequence[Frontier], backend: str, demand: LinkDemand) -> Frontier:
    def distance(each: Frontier) -> float:
        return abs(math.log(each.packet_bytes / demand.packet_bytes)) + abs(math.log(each.links / demand.links))

    return min((each for each in frontiers if each.backend == backend), key=distance)


def _expected(
    frontiers: Sequence[Frontier], backend: str, demand: LinkDemand, load_ratio: float
) -> tuple[float, float] | None:
    """Delay error p50 and p99 at a load, of the nearest point that was measured: at the next higher load."""
    near = _nearest(frontiers, backend, demand)
    if not near.loads:
        return None
    loads = sorted(near.loads, key=lambda each: each.load_ratio)
    found = next((each for each in loads if each.load_ratio >= load_ratio), loads[-1])
    return found.error_p50_ns, found.error_p99_ns
