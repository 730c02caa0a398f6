"""The stages of one direction of an emulated link: impair → queue → rate → delay line, in the plan's integers.

Comes in: what was written for the direction, its delay, MTU and the longest RTT. Goes out: a `Direction`, or a
DescriptionError for what cannot be: a buffer below one packet, jitter beyond the delay, a store beyond memory.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from labs.compile.settings import Settings
from labs.plan import Direction, Framing
from labs.plan import Queue as PlannedQueue
from labs.spec import Spec
from labs.spec.fields import Codel, GilbertElliott, Markov, Pie, Queue, Red
from labs.spec.source import DescriptionError
from labs.spec.values import DelayTable
from labs.units import PPB, Buffer, Duration, Rate, Size, bdp_bytes, bytes_in, time_for

FRAMING = {"wire": Framing(38, 84), "ethernet": Framing(18, 64), "ip": Framing(0, 0)}
WAN_RATE, ACCESS_RATE = Rate.parse("1Gbit/s"), Rate.parse("10Gbit/s")
WAN_BUFFER, ACCESS_BUFFER = Buffer("millibdp", 1000), Buffer("packets", 1000)
FEWEST_PACKETS = 10  # a default buffer holds TCP's initial window (RFC 6928), however short the RTT
ETHERNET_HEADER = 14
SMALLEST_IP = 28  # an IPv4 header and a UDP header: the smallest packet that fills a store
SLOWEST_PACKET = Duration.parse("10s")
CODEL_INTERVAL, PIE_TARGET = Duration.parse("100ms"), Duration.parse("15ms")
LONGEST_CODEL_INTERVAL_NS = 10 * SLOWEST_PACKET.ns
LEAST_PIE_UPDATE = Duration.parse("100us")  # a link evaluates each of them
LARGEST_STORE = Size.parse("8GiB")
PLAIN_STORE_PACKETS = 1 << 20
MEAN_PACKET = 256  # beyond a million packets, a store has room for packets of this size on average
SLACK_PACKETS = 256
MOST_TABLED = 1 << 23  # delays and losses in all tables of a plan, which says them for each direction of each link


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a direction does not know of itself."""

    link: str
    role: str
    delay_ns: int
    mtu: int
    longest_rtt_ns: int


class Stages:
    """Compiles directions; equal ones share everything but their seed."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._seed = str(spec.description.seed)
        self._known: dict[tuple[int, str, int, int], tuple[Settings, Direction]] = {}
        self._tabled = 0

    def direction(self, way: Settings, at: Circumstances, heading: str) -> Direction:
        """`heading` is forward or backward; it and the link's name give the seed, whatever the order of links."""
        key = (id(way), at.role, at.delay_ns, at.mtu)
        if key not in self._known:
            self._known[key] = way, self._compile(way, at)
        same = self._known[key][1]
        delays, losses = len(same.delay.get("delays_ns", ())), len(same.loss.get("pattern", ""))
        self._tabled += delays + losses
        if self._tabled > MOST_TABLED:
            message = f"{at.link} and the links before it have {self._tabled} delays and losses from tables"
            message = f"{message}: write shorter tables, for at most {MOST_TABLED} on all links"
            raise self._error(way, "delay" if delays else "loss", message, None)
        text = f"{self._seed}/{at.link}/{heading}".encode()
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
        return Direction(
            same.framing,
            same.rate_bps,
            same.loss,
            same.corrupt_ppb,
            same.duplicate_ppb,
            same.queue,
            same.delay,
            same.reorder,
            seed,
            same.store_packets,
            same.store_bytes,
        )

    def _compile(self, way: Settings, at: Circumstances) -> Direction:
        framing, rate = framing_of(way), rate_of(way, at.role)
        packet = framed(framing, at.mtu)
        if time_for(packet, rate.bps) > SLOWEST_PACKET.ns:
            took = Duration(time_for(packet, rate.bps))
            message = f"one packet of {Size(packet)} takes {took} on {at.link}: write a smaller mtu or a higher rate"
            raise self._error(way, "rate", message, rate)
        queue = self._queue(way, at, rate, packet)
        delay, longest_ns = self._delay(way, at)
        packets, size = self._store(way, at, queue, longest_ns)
        return Direction(
            framing=framing,
            rate_bps=rate.bps,
            loss=self._loss(way),
            corrupt_ppb=way.values["corrupt"].ppb if "corrupt" in way.values else 0,
            duplicate_ppb=way.values["duplicate"].ppb if "duplicate" in way.values else 0,
            queue=queue,
            delay=delay,
            reorder=bool(way.get("reorder", False)),
            seed=0,
            store_packets=packets,
            store_bytes=size,
        )

    def _error(self, way: Settings, key: str, message: str, value: object) -> DescriptionError:
        return self._spec.error(way.path(key), message, value)

    def _loss(self, way: Settings) -> dict[str, Any]:
        loss = way.get("loss")
        if loss is None:
            return {"kind": "none"}
        match loss.kind:
            case "bernoulli":
                ppb = loss.choice.ppb
                return {"kind": "bernoulli", "loss_ppb": ppb} if ppb else {"kind": "none"}
            case "every":
                return {"kind": "every_nth", "n": loss.choice}
            case "pattern":
                return {"kind": "pattern", "pattern": loss.choice}
        model: GilbertElliott | Markov = loss.choice
        if isinstance(model, Markov):
            for state, leaves in (("received", ("p13", "p14")), ("lost in a burst", ("p31", "p32"))):
                total = sum(getattr(model, key).ppb for key in leaves)
                if total > PPB:
                    message = f"{' and '.join(leaves)} leave the state {state} with more than 100%: write smaller ones"
                    raise self._error(way, "loss", message, None)
            kind = "markov4"
        else:
            kind = "gilbert_elliott"
        return {"kind": kind, **{f"{key}_ppb": getattr(model, key).ppb for key in type(model).model_fields}}

    def _queue(self, way: Settings, at: Circumstances, rate: Rate, packet: int) -> PlannedQueue:
        written: Buffer | None = way.get("buffer")
        buffer = written or (WAN_BUFFER if at.role == "wan" else ACCESS_BUFFER)
        packets, size = buffer_limits(buffer, rate, at.longest_rtt_ns)
        if written is None and size is not None:
            size = max(size, FEWEST_PACKETS * packet)
        if packets == 0 or (size is not None and size < packet):
            holds = "no packet" if packets == 0 else f"{Size(size or 0)}, less than one packet of {Size(packet)}"
            raise self._error(way, "buffer", f'holds {holds}: write at least "1pkt"', buffer)
        room = size if size is not None else (packets or 0) * packet
        return PlannedQueue(packets, size, self._discipline(way, at, rate, packet, room))

    def _discipline(self, way: Settings, at: Circumstances, rate: Rate, packet: int, room: int) -> dict[str, Any]:
        queue: Queue | None = way.get("queue")
        model = queue.choice if queue is not None else None
        if isinstance(model, Red):
            least = model.min.bytes if model.min else room // 6
            most = model.max.bytes if model.max else room // 2
            if not packet <= least < most <= room:
                message = (
                    f"RED needs a packet of {Size(packet)} ≤ min {Size(least)} < max {Size(most)} "
                    f"≤ buffer {Size(room)}: write a larger buffer, or min and max"
                )
                raise self._error(way, "queue", message, "red")
            shape = {"min_bytes": least, "max_bytes": most, "max_p_ppb": model.max_p.ppb}
            return {"kind": "red", **shape, "weight_log2": model.weight, "ecn": model.ecn}
        if isinstance(model, Codel):
            one = time_for(packet, rate.bps)  # RFC 8289, 4.2 and 4.3: a target is a packet's time at least
            longest = max(CODEL_INTERVAL.ns, at.longest_rtt_ns, 10 * one)
            interval = model.interval.ns if model.interval else min(longest, LONGEST_CODEL_INTERVAL_NS)
            target = model.target.ns if model.target else max(interval // 20, one)
            if not 0 < target <= interval:
                message = f'CoDel\'s target {Duration(target)} is not within its interval: write "interval: 100ms"'
                raise self._error(way, "queue", message, "codel")
            return {"kind": "codel", "target_ns": target, "interval_ns": interval, "ecn": model.ecn}
        if isinstance(model, Pie):
            target = model.target.ns if model.target else max(PIE_TARGET.ns, 2 * time_for(packet, rate.bps))
            if not target or model.update.ns < LEAST_PIE_UPDATE.ns:
                message = (
                    f'PIE needs a target above zero and an update of {LEAST_PIE_UPDATE} or more: write "update: 15ms"'
                )
                raise self._error(way, "queue", message, "pie")
            times = {"target_ns": target, "update_ns": model.update.ns}
            return {"kind": "pie", **times, "alpha_mhz": model.alpha, "beta_mhz": model.beta, "ecn": model.ecn}
        return {"kind": "drop_tail"}

    def _delay(self, way: Settings, at: Circumstances) -> tuple[dict[str, Any], int]:
        """The delay, and the longest that it can become."""
        table, jitter = way.get("delay"), way.get("jitter")
        jitter_ns = jitter.ns if jitter is not None else 0
        if "distribution" in way.values and not jitter_ns:
            raise self._error(way, "distribution", 'has nothing to spread: write "jitter: 1ms" too', None)
        if way.get("reorder") and not jitter_ns and not isinstance(table, DelayTable):
            raise self._error(way, "reorder", 'a constant delay reorders nothing: write "jitter: 1ms" too', "true")
        if isinstance(table, DelayTable):
            if jitter_ns:
                raise self._error(way, "jitter", "the delays of a table vary already: leave jitter out", jitter)
            return {"kind": "table", "delays_ns": list(table.delays_ns)}, max(table.delays_ns)
        if jitter_ns > at.delay_ns:
            delay = Duration(at.delay_ns)
            message = f'is more than the delay of {delay} on {at.link}: write at most "{delay}"'
            raise self._error(way, "jitter", message, jitter)
        if not jitter_ns:
            return {"kind": "constant", "delay_ns": at.delay_ns}, at.delay_ns
        kind = way.get("distribution", "normal")
        beyond = {"uniform": 1, "normal": 4, "pareto": 10}[kind]
        return {"kind": kind, "delay_ns": at.delay_ns, "jitter_ns": jitter_ns}, at.delay_ns + beyond * jitter_ns

    def _store(self, way: Settings, at: Circumstances, queue: PlannedQueue, longest_ns: int) -> tuple[int, int]:
        """Room for the queue and the delay line: packets if all are small, bytes if all are large."""
        framing, rate = framing_of(way), rate_of(way, at.role)
        largest, smallest = framed(framing, at.mtu), framed(framing, SMALLEST_IP)
        line = bytes_in(rate.bps, longest_ns)
        waiting = queue.limit_bytes if queue.limit_bytes is not None else (queue.limit_packets or 0) * largest
        small = line // smallest + (queue.limit_packets or waiting // smallest)
        packets = min(small, max(PLAIN_STORE_PACKETS, (line + waiting) // MEAN_PACKET)) + SLACK_PACKETS
        header = max(0, ETHERNET_HEADER - framing.overhead_bytes)  # stored, though the framing does not count it
        room = line + waiting
        size = room + header * (room // smallest) + SLACK_PACKETS * (at.mtu + ETHERNET_HEADER)
        if size > LARGEST_STORE.bytes:
            message = (
                f"{at.link} must hold {rate} × {Duration(longest_ns)} = {Size(line)} in flight and {Size(waiting)} "
                f"in its buffer, more than {Size(LARGEST_STORE.bytes)}: write a lower rate, delay or buffer"
            )
            raise self._error(way, "rate", message, rate)
        return packets, size


def framing_of(way: Settings) -> Framing:
    return FRAMING[way.get("framing", "wire")]


def rate_of(way: Settings, role: str) -> Rate:
    rate: Rate = way.get("rate", WAN_RATE if role == "wan" else ACCESS_RATE)
    return rate


def framed(framing: Framing, ip_bytes: int) -> int:
    """What a packet counts."""
    return max(ip_bytes + framing.overhead_bytes, framing.minimum_bytes)


def buffer_limits(buffer: Buffer, rate: Rate, longest_rtt_ns: int) -> tuple[int | None, int | None]:
    """A buffer as a limit in packets or in bytes."""
    match buffer.unit:
        case "packets":
            return buffer.amount, None
        case "bytes":
            return None, buffer.amount
        case "ns":
            return None, bytes_in(rate.bps, buffer.amount)
        case "millibdp":
            return None, bdp_bytes(rate.bps, longest_rtt_ns, buffer.amount)
