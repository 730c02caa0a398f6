"""The longest time that a packet may be on its way: for how long a receiver of UDP listens after the last one left.

In: links of a plan, a path over them, the events that change links during a run. Out: nanoseconds. A full queue drains
at the rate that the plan and the events give, then comes the longest delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ewan.labs.base.codec import replace
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND, time_for
from ewan.labs.link import Direction
from ewan.labs.link.delay import longest_ns
from ewan.labs.link.queue import Queue, queue_limits
from ewan.labs.link.trace import NoTrace, TraceRows
from ewan.labs.plan import Hop, Link
from ewan.labs.record.events import Event

_FRAMING_BYTES = 64
"""More than any link adds to an IP packet."""


def longest_transit_ns(links: Mapping[str, Link], hops: Iterable[Hop], events: Sequence[Event], mtu: int) -> int:
    """The longest time (ns) that a packet takes on a path from end to end; hops over plain links, which hold little,
    count nothing. `mtu`: bytes. Events that wait may come before all others, or after them."""
    timed, waiting = [each for each in events if not each.after], [each for each in events if each.after]
    last_ns = max((each.at_ns for each in timed), default=0)
    early, late = ([replace(each, at_ns=at_ns) for each in waiting] for at_ns in (0, last_ns))
    orders = [[*early, *timed], [*timed, *late]] if waiting else [timed]
    path = [hop for hop in hops if hop.link in links]
    return max(sum(_of_hop(links[hop.link], hop, each, mtu) for hop in path) for each in orders)


def _of_hop(link: Link, hop: Hop, events: Sequence[Event], mtu: int) -> int:
    states = [(0, link.forward if hop.direction == "forward" else link.backward)]
    for event in events:
        if event.down is None and (event.link, event.direction) == (hop.link, hop.direction):
            states.append((event.at_ns, event.change.applied(states[-1][1])))
    directions = [direction for _, direction in states]
    waiting_bytes = max(_queue_bytes(direction.queue, mtu) for direction in directions)
    drain_ns = longest_drain_ns([(at_ns, direction.rate_bps) for at_ns, direction in states], waiting_bytes)
    shared = 2 if any(direction.half_duplex for direction in directions) else 1
    gaps_ns = max(_gaps_ns(direction, waiting_bytes // mtu) for direction in directions)
    return shared * (drain_ns + gaps_ns) + max(map(_beyond_queue_ns, directions))


def _queue_bytes(queue: Queue, mtu: int) -> int:
    """The most bytes that wait, with the packet in service."""
    largest = mtu + _FRAMING_BYTES
    limits = [
        (each.limit_bytes, None if each.limit_packets is None else each.limit_packets * largest)
        for each in queue_limits(queue)
    ]
    return sum(min(limit for limit in both if limit is not None) for both in limits) + largest


def longest_drain_ns(rates: Sequence[tuple[int, int]], waiting_bytes: int) -> int:
    """The longest time (ns) that so many bytes take to leave, whenever they begin. `rates`: (from when on, in ns;
    bit/s).

    As a function of the time at which the bytes begin to leave, this time is longest where it begins or ends with a
    change of the rate: between those it only grows or only falls."""
    backwards = [(-end_ns, bps) for (_, bps), (end_ns, _) in pairwise(rates)][::-1]
    longest = 0
    for index, (at_ns, _) in enumerate(rates):
        longest = max(longest, _drained_ns(rates[index:], at_ns, waiting_bytes))
        if index:
            longest = max(longest, _drained_ns(backwards[len(backwards) - index :], -at_ns, waiting_bytes))
    return longest


def _drained_ns(rates: Sequence[tuple[int, int]], from_ns: int, waiting_bytes: int) -> int:
    """The time (ns) that so many bytes take from `from_ns` on, where the first rate begins; the last rate goes on for
    ever."""
    left = waiting_bytes
    for (at_ns, bps), (next_ns, _) in pairwise(rates):
        carried = bps * (next_ns - at_ns) // (BITS_PER_BYTE * NS_PER_SECOND)
        if carried >= left:
            return at_ns - from_ns + time_for(left, bps)
        left -= carried
    at_ns, bps = rates[-1]
    return at_ns - from_ns + time_for(left, bps)


def _gaps_ns(direction: Direction, packets: int) -> int:
    """The time (ns) that aggregation adds to that of so many packets, compared with a single packet."""
    aggregate = direction.aggregate
    return aggregate.gap_ns * (packets // aggregate.packets + 2) + aggregate.time_ns if aggregate.packets else 0


def _beyond_queue_ns(direction: Direction) -> int:
    delay_ns = max(longest_ns(direction.delay), _of_trace_ns(direction))
    return delay_ns + direction.harq.longest_ns + direction.slot_ns + direction.displace_within_ns


def _of_trace_ns(direction: Direction) -> int:
    """The longest delay that a trace has, and the time in which its mean rate is reached."""
    match direction.trace:
        case NoTrace():
            return 0
        case TraceRows(rows=rows, period_ns=period_ns):
            return max(row[2] or 0 for row in rows) + (period_ns or int(rows[-1][0] or 0))
        case opportunities:
            return opportunities.period_ns
