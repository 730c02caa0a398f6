"""The values that a measurement of a link or of a pair must find: types, and the figures that follow from them. Pure.

In the virtual clock a host adds to each packet what `HostExit` says: the time that its access rate takes, which is in
`delay_ns` and `round_trip_ns`, and a dither uniform in [0, `dither_ns`), which is not: a one-way delay from host or
router lies in `delay_ns` + [0, `LinkExpectation.dither_ns`), a round trip in `round_trip_ns` + the sum of two
uniforms, [0, `PairExpectation.source_exit.dither_ns`) and [0, `.sink_exit.dither_ns`). Links that the kernel emulates
delay before they queue, and user links after; an empty queue shows no difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ewan.calibration import lans
from ewan.calibration.distribution import DelayLine, Fate, LossStatistics, loss, netem_fate, own_fate
from ewan.labs.base.codec import replace
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND, PPB, Duration
from ewan.labs.link import NO_AGGREGATE, BitErrorLoss, Direction, DropTail, EveryNthLoss, Framing, LossPattern, Red
from ewan.labs.link.trace import Said, TraceOpportunities, TraceRows, said

CARD_SHARE = 0.95
"""The share of a card's rate that a probe asks for, so that the card's own queue does not fill."""
ENOUGH = 1.02
"""Times a link's rate: less does not show that it is the link that limits."""
MOVED_BY: dict[str, frozenset[Said]] = {
    "delay": frozenset({"rate", "delay"}),
    "rate": frozenset({"rate", "delay", "loss"}),
    "loss": frozenset({"rate", "loss"}),
    "queue limit": frozenset({"rate", "delay", "loss", "buffer"}),
}
"""A quantity that is measured, and what moves it when a trace says it."""
MOST_IP_BYTES = 65535
NETEM = ("kernel", "tbf")
"""Back ends whose losses, duplicates and damage are netem's."""
BYTE_NS = BITS_PER_BYTE * NS_PER_SECOND
"""bytes × this / (bit/s) is ns; bit/s × ns / this is bytes."""


def framed_bytes(framing: Framing, packet_bytes: int) -> int:
    """The bytes that an IP packet of this size counts on the link."""
    return max(packet_bytes + framing.overhead_bytes, framing.minimum_bytes)


def serialisation_ns(direction: Direction, packet_bytes: int) -> float:
    """The serialisation time of an IP packet of this size at the link's rate, framing counted."""
    return framed_bytes(direction.framing, packet_bytes) * BYTE_NS / direction.rate_bps


def own_ns(backend: str, direction: Direction, packet_bytes: int) -> float:
    """The time that the rate adds to a lone packet; a token bucket lets it pass at once, or at its peak rate."""
    if backend == "tbf":
        return 0.0
    size = framed_bytes(direction.framing, packet_bytes)
    missing = max(size - direction.burst_bytes, 0) * BYTE_NS / direction.rate_bps
    peak = size * BYTE_NS / direction.peak_bps if direction.peak_bps else 0.0
    return max(missing, peak) + direction.aggregate.gap_ns


def occupied_ns(direction: Direction, packet_bytes: int) -> float:
    """The time for which a single packet of this size occupies the link, or the tokens of its policer."""
    slowest = min(direction.rate_bps, direction.police_bps or direction.rate_bps)
    return framed_bytes(direction.framing, packet_bytes) * BYTE_NS / slowest + direction.aggregate.gap_ns


def fate(backend: str, direction: Direction, packet_bytes: int) -> Fate:
    """Shares of IP packets of this size that a link of this back end loses, copies and damages, without its queue."""
    duplicate, corrupt = direction.duplicate_ppb / PPB, direction.corrupt_ppb / PPB
    model = direction.loss
    if backend in NETEM and not isinstance(model, BitErrorLoss | EveryNthLoss | LossPattern):
        return netem_fate(model, duplicate, corrupt)
    return own_fate(loss(model, framed_bytes(direction.framing, packet_bytes)), duplicate, corrupt)


def losses(backend: str, direction: Direction, packet_bytes: int) -> LossStatistics:
    """The losses of IP packets of this size: those that are lost, or so damaged that a checksum fails."""
    return fate(backend, direction, packet_bytes).losses


def passing_bytes(direction: Direction) -> int:
    """The longest IP packet that no black hole swallows."""
    return direction.blackhole_bytes or MOST_IP_BYTES


FEW_DISPLACED_PPB = PPB // 10
"""The median of a constant delay shows that delay all the same."""


def untold(direction: Direction, quantity: str) -> str:
    """Why a direction has no single value of a quantity; empty where it has one."""
    if direction.slot_ns and quantity != "loss":
        return f"it sends at the ends of slots of {Duration(direction.slot_ns)}"
    if direction.aggregate != NO_AGGREGATE and quantity in ("rate", "queue limit"):
        return "it carries what is sent together, which depends on how many packets wait"
    if moved := _moved(direction, quantity):
        return moved
    return "it displaces packets, which then are later" if direction.displace_ppb and quantity == "delay" else ""


def _moved(direction: Direction, quantity: str) -> str:
    moved = sorted(said(direction.trace) & MOVED_BY[quantity])
    return f"it follows a trace, which says the {' and the '.join(moved)}" if moved else ""


_UNCOUNTED = Framing(0, 0)


@dataclass(frozen=True, slots=True)
class HostExit:
    """The delay that a sender's own psp adds; nothing (the default) at routers and in the live clock."""

    rate_bps: int = 0
    framing: Framing = _UNCOUNTED
    dither_ns: int = 0

    def serialisation_ns(self, packet_bytes: int) -> float:
        """The serialisation time of an IP packet of this size at the sender's own rate; 0 if it has none."""
        return framed_bytes(self.framing, packet_bytes) * BYTE_NS / self.rate_bps if self.rate_bps else 0.0


@dataclass(frozen=True, slots=True)
class ProbeEnds:
    """The two ends of a direction: nodes and their addresses of one family."""

    source: str
    source_address: str
    sink: str
    sink_address: str

    @property
    def ip_header_bytes(self) -> int:
        """The header size of IPv6, or of IPv4 without options."""
        return 40 if ":" in self.sink_address else 20


@dataclass(frozen=True, slots=True)
class LinkExpectation:
    """One direction of one link."""

    link: str
    name: str
    ends: ProbeEnds
    mtu_bytes: int
    direction: Direction
    line: DelayLine
    loss: LossStatistics
    """The losses of packets as small as probes of loss."""
    duplicates: float
    backend: str = "user"
    source_exit: HostExit = HostExit()
    senders: tuple[ProbeEnds, ...] = ()
    """All senders of a port that hosts share, from the one in `ends` on."""
    card_bps: int = 0
    """The rate of what else a sender's packets pass, its own card say; 0: nothing that has one."""
    after: tuple[HostExit, ...] = ()
    """The other ports of switches on the way to where the packets are measured."""
    wakeups: int = 0
    """Switches in user space on the way."""
    other: Direction | None = None
    """The other direction of a half-duplex link, which sends on the same medium."""
    own_queue: bool = False
    """True for a device with a queue of its own, whose size is unknown."""

    @property
    def key(self) -> str:
        """Names the link and direction in probes and results: "core forward"."""
        return f"{self.link} {self.name}"

    def together(self, above: float) -> tuple[tuple[ProbeEnds, ...], float]:
        """Who sends so many times the link's rate, and how many times it then is: cards may be too slow for it."""
        if not self.senders:
            return (self.ends,), min(
                above, CARD_SHARE * self.card_bps / self.direction.rate_bps if self.card_bps else above
            )
        one = CARD_SHARE * self.card_bps / self.direction.rate_bps
        count = min(math.ceil(above / one), len(self.senders))
        return self.senders[:count], min(above, count * one)

    def untold(self, quantity: str) -> str:
        """Why there is no single value of a quantity, or none that shows; empty where there is one."""
        if self.direction.police_bps and quantity in ("rate", "queue limit"):
            return "its policer drops what would fill it"
        steady = self.line.constant and not self.direction.slot_ns
        if quantity == "delay" and steady and self.direction.displace_ppb <= FEW_DISPLACED_PPB:
            return _moved(self.direction, quantity)
        return untold(self.direction, quantity)

    @property
    def cause(self) -> str:
        """The reason why the link may differ from the plan; empty if none is known."""
        return lans.USER_SPACE if self.wakeups else ""

    @property
    def dither_ns(self) -> int:
        """A measured delay is longer than `delay_ns` by a time uniform from 0 to this."""
        return self.source_exit.dither_ns

    def delay_ns(self, packet_bytes: int) -> float:
        """Mean one-way delay through an empty queue, without dither."""
        own = own_ns(self.backend, self.direction, packet_bytes)
        exits = sum(each.serialisation_ns(packet_bytes) for each in (self.source_exit, *self.after))
        return self.line.mean_ns + own + exits

    @property
    def moves_all(self) -> bool:
        """Return whether a trace or slots change the delay of all packets; displacement changes the delay of some."""
        return bool(self.direction.slot_ns or _moved(self.direction, "delay")) and not self.direction.displace_ppb

    def least_delays_ns(self, packet_bytes: int) -> tuple[float, float]:
        """Between these the least of many one-way delays lies where a trace or slots move all of them, without dither.

        The first is a bound of every delay. The second holds where at least one packet found neither a queue nor a
        packet of the other direction before it.
        """
        least, greatest = delay_bounds_ns(self.backend, self.direction, self.line, packet_bytes)
        exits = sum(each.serialisation_ns(packet_bytes) for each in (self.source_exit, *self.after))
        return least + exits, greatest + exits

    def queue_packets(self, packet_bytes: int) -> int:
        """The number of packets of this size that may wait."""
        queue = self.direction.queue
        size = framed_bytes(self.direction.framing, packet_bytes)
        limits = [
            queue.limit_packets,
            None if queue.limit_bytes is None else queue.limit_bytes // size,
        ]
        return min(limit for limit in limits if limit is not None)

    @property
    def bucket(self) -> bool:
        """Return whether the rate is a token bucket's, which lets a burst pass."""
        return self.backend == "tbf" or self.direction.burst_bytes > 0

    @property
    def switched(self) -> bool:
        """Return whether its packets pass ports of switches which other links' packets pass too."""
        return bool(self.card_bps or self.after or self.senders)

    def busy_ns(self, packet_bytes: int) -> float:
        """For so long a packet of this size takes what packets of other streams use too."""
        senders = (self.direction,) if self.other is None else (self.direction, self.other)
        port = framed_bytes(self.direction.framing, packet_bytes) * BYTE_NS / self.card_bps if self.card_bps else 0.0
        return max(port, *(occupied_ns(each, packet_bytes) for each in senders))

    def apart_ns(self, packet_bytes: int) -> float:
        """Packets this far apart do not wait for each other at the rate, and a policer lets them pass."""
        return 4 * occupied_ns(self.direction, packet_bytes)

    def latest_ns(self, packet_bytes: int) -> float:
        """So long after it was sent, a packet that found no queue has come through, or never will."""
        _, greatest = self.least_delays_ns(packet_bytes)
        return greatest + self.direction.displace_within_ns + self.dither_ns

    def settling_packets(self) -> int:
        """So many packets that find an empty queue end what an overload leaves behind: 0 where that is nothing.

        RED counts a queue as idle when it is asked for a packet and has none (net/sched/sch_red.c, red_dequeue). The
        kernel's rate limiters look into it before they ask, so it never is: its average falls only with arrivals, and
        after an overload it drops all of them until it has fallen.
        """
        queue = self.direction.queue
        if self.backend not in NETEM or not isinstance(queue.discipline, Red):
            return 0
        held = self.queue_packets(self.mtu_bytes) * framed_bytes(self.direction.framing, self.mtu_bytes)
        falls = -math.log1p(-(0.5**queue.discipline.weight_log2))
        return math.ceil(math.log(max(held / queue.discipline.min_bytes, 1)) / falls)

    def emptied_ns(self, above: float) -> float:
        """The time (ns) after which the bucket is empty if packets arrive at `above` times the rate."""
        return self.direction.burst_bytes * BYTE_NS / self.direction.rate_bps / max(above - 1, 0.001)

    @property
    def active_queue(self) -> str | None:
        """The name of a discipline that drops before the limit, if there is one."""
        discipline = self.direction.queue.discipline
        return None if isinstance(discipline, DropTail) else discipline.words

    def through(self, packet_bytes: int) -> float:
        """The number of packets that arrive for each one of this size that is sent: losses and copies count, the
        queue's drops do not."""
        known = fate(self.backend, self.direction, packet_bytes)
        return known.carried * (1 - known.damaged)

    @property
    def damaged(self) -> float:
        """The share of what it carries that takes its time and does not arrive."""
        return fate(self.backend, self.direction, self.mtu_bytes).damaged

    @property
    def duplicates_of_arrived(self) -> float:
        """The share of arriving packets that arrive twice."""
        known = fate(self.backend, self.direction, self.mtu_bytes)
        return known.twice / (1 - known.losses.probability)

    @property
    def lossless(self) -> bool:
        """Nothing is lost or corrupted on purpose."""
        return self.loss.probability == 0 and self.direction.corrupt_ppb == 0


def _between(rows: Sequence[Sequence[int | None]], column: int) -> tuple[int, int]:
    """The least and the greatest value of a trace's column."""
    values = [value for row in rows if (value := row[column]) is not None]
    return min(values), max(values)


def delay_bounds_ns(backend: str, direction: Direction, line: DelayLine, packet_bytes: int) -> tuple[float, float]:
    """Between these the delay of a packet lies that finds no queue, whatever a trace says and slots wait for."""
    delays, rates, waits = (line.least_ns, line.most_ns), (direction.rate_bps, direction.rate_bps), 0
    match direction.trace:
        case TraceRows(rows=rows, period_ns=period):
            told = said(direction.trace)
            if "delay" in told:
                delays = _between(rows, 2)
            if "rate" in told:
                rates = _between([row for row in rows if row[1]] or rows, 1)
                # During an outage a packet waits for a later row.
                waits = max(period, rows[-1][0] or 0) if any(row[1] == 0 for row in rows) else 0
        case TraceOpportunities(period_ns=period):
            rates, waits = (0, 0), period
        case _:
            pass
    at_rates = [replace(direction, rate_bps=rate) for rate in rates if rate]
    own = [own_ns(backend, each, packet_bytes) for each in at_rates] or [0.0]
    # Over outages it takes as long as at the mean rate, which the direction has.
    slowest = max(*own, own_ns(backend, direction, packet_bytes))
    shared = direction.aggregate.time_ns if direction.half_duplex else 0
    return delays[0] + min(own), delays[1] + slowest + waits + direction.slot_ns + shared


@dataclass(frozen=True, slots=True)
class PairExpectation:
    """The values that a measurement between two hosts must find. Times are ns, of a round trip."""

    source: str
    sink: str
    links: tuple[str, ...]
    ends: ProbeEnds
    rtt_ns: float
    """Propagation only, the mean of both ways."""
    deviation_ns: float
    lines: tuple[DelayLine, ...]
    """The delay lines of `directions`."""
    spread_ns: float
    """Round trips this far apart (nearly) never wait for each other in a delay line."""
    bottleneck_bps: int
    goodput_bps: float
    goodput_fair: bool
    """May TCP be expected to reach the ceiling: nothing lost on purpose, the queue holds the BDP."""
    directions: tuple[Direction, ...]
    lossless: bool
    backends: tuple[str, ...]
    """The back ends of the links that `directions` belong to."""
    exits: tuple[HostExit, ...] = ()
    """The exits of all nodes that send into plain links on a round trip."""
    source_exit: HostExit = HostExit()
    sink_exit: HostExit = HostExit()
    wakeups: int = 0
    """The switches in user space on a round trip."""
    passing_bytes: int = MOST_IP_BYTES
    """Longer packets vanish in a black hole, there or back."""
    mtu_bytes: int = 0
    """The MTU of the path, which is the size of full segments."""
    bucket_bytes: int = 0
    """The policers that limit the goodput let so much pass above their rates."""
    bucket_ns: float = 0.0
    """The slowest of these buckets takes so long to fill."""

    @property
    def key(self) -> str:
        """Names the pair in probes and results: "left1 to right1"."""
        return f"{self.source} to {self.sink}"

    def untold(self, quantity: str) -> str:
        """Why there is no single value of a quantity of a link on the path; empty where there is one."""
        if quantity == "queue limit" and any(direction.half_duplex for direction in self.directions):
            return "data and ACKs take turns on a link on its path"
        why = next((why for each in self.directions if (why := untold(each, quantity))), "")
        return why.replace("it", "a link on its path", 1)

    @property
    def ways(self) -> list[tuple[str, Direction]]:
        """The back end and the settings of each direction."""
        return list(zip(self.backends, self.directions, strict=True))

    def answered(self, packet_bytes: int) -> float:
        """The share of packets that arrive and are answered, with what is lost and damaged on purpose."""
        return math.prod(1 - losses(*way, packet_bytes).probability for way in self.ways)

    def slowest_ns(self, packet_bytes: int) -> float:
        """For so long a packet of this size takes the slowest link of a round trip."""
        plain = packet_bytes * BYTE_NS / max(self.bottleneck_bps, 1)
        return max((occupied_ns(each, packet_bytes) for each in self.directions), default=plain)

    def latest_ns(self, packet_bytes: int) -> float:
        """So long after it was sent, a packet of this size that found no queue has been answered, or never will be."""
        ways = zip(self.backends, self.directions, self.lines, strict=True)
        bounds = sum(delay_bounds_ns(*way, packet_bytes)[1] + way[1].displace_within_ns for way in ways)
        return bounds + sum(exit_.serialisation_ns(packet_bytes) for exit_ in self.exits) + self.dither_ns

    def wander_ns(self, trips: int) -> float:
        """The deviation of the mean of so many round trips, at most."""
        return math.hypot(*(line.wander_ns(trips) for line in self.lines))

    @property
    def dither_ns(self) -> int:
        """A round trip is longer than `round_trip_ns` by less than this: a uniform time at each end."""
        return self.source_exit.dither_ns + self.sink_exit.dither_ns

    def round_trip_ns(self, packet_bytes: int) -> float:
        """The round-trip time (ns) of a packet and an answer of the same size, without dither."""
        exits = sum(exit_.serialisation_ns(packet_bytes) for exit_ in self.exits)
        return self.rtt_ns + sum(own_ns(*way, packet_bytes) for way in self.ways) + exits


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expected values of both directions of each emulated link, of each shared port of a switch, and of the round
    trip of each pair."""

    links: tuple[LinkExpectation, ...]
    pairs: tuple[PairExpectation, ...]
