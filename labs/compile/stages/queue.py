"""The queue of a direction: its buffer as a limit in packets or bytes, and its discipline with defaults applied."""

from __future__ import annotations

from typing import Any, NamedTuple, assert_never

from ewan.labs.base.units import Buffer, Duration, Rate, Size, bdp_bytes, bytes_in, time_for
from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages.context import UINT32, LinkContext, Obstacle
from ewan.labs.compile.stages.framing import SLOWEST_PACKET, framed, framing_of
from ewan.labs.compile.stages.trace import most
from ewan.labs.spec import fields
from ewan.labs.stages import (
    Classes,
    Codel,
    Discipline,
    DropTail,
    Drr,
    DualPi2,
    FqCodel,
    Pie,
    Queue,
    Red,
    Sfq,
    Step,
    TrafficClass,
)

WAN_BUFFER, ACCESS_BUFFER = Buffer("millibdp", 1000), Buffer("packets", 1000)
FEWEST_PACKETS = 10  # a default buffer holds TCP's initial window (RFC 6928), however short the RTT
CODEL_INTERVAL, PIE_TARGET = Duration.parse("100ms"), Duration.parse("15ms")
LONGEST_CODEL_INTERVAL_NS = 10 * SLOWEST_PACKET.ns
LEAST_UPDATE = Duration.parse("100us")  # a link evaluates each of them
LEAST_QUANTUM, MOST_QUANTUM = Size.parse("64B"), Size.parse("1MiB")

# PIE's gains in the kernel are sixteenths of a hertz, at most two hertz (net/sched/sch_pie.c).
PIE_GAIN_MHZ, PIE_MOST_STEPS = 62.5, 32
RED_BITS = 32  # of max_bytes and the weight together (red_check_params in include/net/red.h)
CODEL_STEP_NS = 1000


class Room(NamedTuple):
    """What may wait in a direction: its limits, and what they come to in bytes of the largest packet."""

    limit_packets: int | None
    limit_bytes: int | None
    bytes: int


def compile_queue(way: Settings, at: LinkContext) -> Queue:
    """DescriptionError for a buffer below one packet, and for a discipline that cannot work."""
    packet = framed(framing_of(way), at.mtu)
    traced = most(way, "buffer")
    written = way.written.buffer if traced is None else Buffer("bytes", traced)
    buffer = written or (WAN_BUFFER if at.role == "wan" else ACCESS_BUFFER)
    if written is None:
        _, size = buffer_limits(buffer, way.rate, at.longest_rtt_ns)
        buffer = buffer if size is None else Buffer("bytes", max(size, FEWEST_PACKETS * packet))
    room = _room(buffer, "buffer", way, at, packet)
    return Queue(room.limit_packets, room.limit_bytes, _discipline(way, at, packet, room))


def _room(buffer: Buffer, key: str, way: Settings, at: LinkContext, packet: int) -> Room:
    """DescriptionError, at this key, for less than one of the largest packet."""
    packets, size = buffer_limits(buffer, way.rate, at.longest_rtt_ns)
    held = size if size is not None else (packets or 0) * packet
    if held < packet:
        holds = "no packet" if packets == 0 else f"{Size(held)}, less than one packet of {Size(packet)}"
        raise at.error(way, key, f'holds {holds}: write at least "1pkt"', buffer)
    return Room(packets, size, held)


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
        case _:
            assert_never(buffer.unit)


def _discipline(way: Settings, at: LinkContext, packet: int, room: Room) -> Discipline:
    """The discipline with its defaults; `packet` is the largest packet in bytes."""
    if way.written.queue is None:
        return DropTail()
    match way.written.queue.model:
        case fields.DropTail():
            return DropTail()
        case fields.Red() as model:
            return _red(model, way, at, packet, room.bytes)
        case fields.Codel() as model:
            target, interval = _codel_times(model, way, at, packet)
            return Codel(target_ns=target, interval_ns=interval, ecn=model.ecn)
        case fields.Pie() as model:
            return _pie(model, way, at, packet)
        case fields.Step() as model:
            return _step(model, way, at, packet, room.bytes)
        case fields.FqCodel() as model:
            target, interval = _codel_times(model, way, at, packet)
            quantum = _quantum(model, way, at, packet)
            return FqCodel(
                flows=model.flows, quantum_bytes=quantum, target_ns=target, interval_ns=interval, ecn=model.ecn
            )
        case fields.Drr() as model:
            return Drr(flows=model.flows, quantum_bytes=_quantum(model, way, at, packet))
        case fields.Sfq() as model:
            return _sfq(model, way, at, packet)
        case fields.DualPi2() as model:
            return _dualpi2(model, way, at, packet)
        case fields.Priority() | fields.Weighted() as model:
            return _classes(model, way, at, packet, room)
        case unknown:
            assert_never(unknown)


def _red(model: fields.Red, way: Settings, at: LinkContext, packet: int, room: int) -> Red:
    least = model.min.bytes if model.min else room // 6
    most = model.max.bytes if model.max else room // 2
    if not packet <= least < most <= room:
        message = (
            f"RED needs a packet of {Size(packet)} ≤ min {Size(least)} < max {Size(most)} "
            f"≤ buffer {Size(room)}: write a larger buffer, or min and max"
        )
        raise at.error(way, "queue", message, "red")
    return Red(min_bytes=least, max_bytes=most, max_p_ppb=model.max_p.ppb, weight_log2=model.weight, ecn=model.ecn)


def _codel_times(model: fields.Codel | fields.FqCodel, way: Settings, at: LinkContext, packet: int) -> tuple[int, int]:
    """Target and interval in ns."""
    one = time_for(packet, way.rate.bps)  # RFC 8289, 4.2 and 4.3: a target is a packet's time at least
    longest = max(CODEL_INTERVAL.ns, at.longest_rtt_ns, 10 * one)
    interval = model.interval.ns if model.interval else min(longest, LONGEST_CODEL_INTERVAL_NS)
    target = model.target.ns if model.target else max(interval // 20, one)
    if not 0 < target <= interval:
        message = f'CoDel\'s target {Duration(target)} is not within its interval: write "interval: 100ms"'
        raise at.error(way, "queue", message, None)
    return target, interval


def _pie(model: fields.Pie, way: Settings, at: LinkContext, packet: int) -> Pie:
    target = model.target.ns if model.target else max(PIE_TARGET.ns, 2 * time_for(packet, way.rate.bps))
    if not target or model.update.ns < LEAST_UPDATE.ns:
        message = f'PIE needs a target above zero and an update of {LEAST_UPDATE} or more: write "update: 15ms"'
        raise at.error(way, "queue", message, "pie")
    return Pie(target_ns=target, update_ns=model.update.ns, alpha_mhz=model.alpha, beta_mhz=model.beta, ecn=model.ecn)


def _step(model: fields.Step, way: Settings, at: LinkContext, packet: int, room: int) -> Step:
    threshold = _room(model.at, "queue", way, at, packet).bytes
    if threshold > room:
        message = f"the step at {Size(threshold)} is beyond the buffer of {Size(room)}: write a larger buffer"
        raise at.error(way, "queue", message, None)
    return Step(threshold)


def _quantum(model: fields.FqCodel | fields.Drr | fields.Sfq, way: Settings, at: LinkContext, packet: int) -> int:
    quantum = model.quantum.bytes if model.quantum else packet
    if not LEAST_QUANTUM.bytes <= quantum <= MOST_QUANTUM.bytes:
        message = f'a quantum is {LEAST_QUANTUM} to {MOST_QUANTUM}: write "quantum: {packet}B", the largest packet'
        raise at.error(way, "queue", message, None)
    return quantum


def _sfq(model: fields.Sfq, way: Settings, at: LinkContext, packet: int) -> Sfq:
    perturb_ns = model.perturb.ns if model.perturb else 0
    if 0 < perturb_ns < LEAST_UPDATE.ns:
        message = f'SFQ gives flows to queues anew after {LEAST_UPDATE} or more: write "perturb: 10s"'
        raise at.error(way, "queue", message, "sfq")
    return Sfq(flows=model.flows, quantum_bytes=_quantum(model, way, at, packet), perturb_ns=perturb_ns)


def _dualpi2(model: fields.DualPi2, way: Settings, at: LinkContext, packet: int) -> DualPi2:
    target = model.target.ns if model.target else max(PIE_TARGET.ns, 2 * time_for(packet, way.rate.bps))
    if not target or not model.step.ns or model.update.ns < LEAST_UPDATE.ns:
        message = f"DualPI2 needs a target and a step above zero and an update of {LEAST_UPDATE} or more"
        raise at.error(way, "queue", f'{message}: write "update: 16ms"', "dualpi2")
    return DualPi2(
        target_ns=target,
        update_ns=model.update.ns,
        alpha_mhz=model.alpha,
        beta_mhz=model.beta,
        coupling=model.coupling,
        step_ns=model.step.ns,
        classic_ppb=model.classic.ppb,
    )


def _classes(
    model: fields.Priority | fields.Weighted, way: Settings, at: LinkContext, packet: int, room: Room
) -> Classes:
    owners: dict[int, str] = {}
    names: set[str] = set()
    classes = []
    for each in model.classes:
        if each.name in names:
            raise at.error(way, "queue", f"two classes are called {each.name}: write another name", None)
        names.add(each.name)
        for point in each.dscp:
            if point in owners:
                message = f"DSCP {point} is of class {owners[point]} and of class {each.name}: write it once"
                raise at.error(way, "queue", message, None)
            owners[point] = each.name
        own = room if each.buffer is None else _room(each.buffer, "queue", way, at, packet)
        weight = each.weight if isinstance(each, fields.WeightedClass) else 1
        classes.append(TrafficClass(each.dscp, own.limit_bytes, own.limit_packets, each.name, weight))
    return Classes(tuple(classes), "weighted" if isinstance(model, fields.Weighted) else "strict")


def described(queue: Queue) -> dict[str, Any]:
    """The key of a description that says the queue's limit."""
    if queue.limit_bytes is not None:
        return {"buffer": Buffer("bytes", queue.limit_bytes)}
    return {"buffer": Buffer("packets", queue.limit_packets or 0)}


def obstacle(queue: Queue) -> Obstacle | None:
    """What the kernel's queueing disciplines cannot hold."""
    if max(queue.limit_bytes or 0, queue.limit_packets or 0) > UINT32:
        return "buffer", 'a queue of the kernel holds 32 bits of bytes: write at most "4GB"'
    match queue.discipline:
        case Red(max_bytes=most, weight_log2=weight):
            if most.bit_length() + weight >= RED_BITS:
                most = (1 << (RED_BITS - 1 - weight)) - 1
                return "queue", f'RED with weight {weight} takes at most "max: {most}B": write that'
        case Codel(target_ns=target):
            if target < CODEL_STEP_NS:
                return "queue", 'CoDel\'s target is at least 1us: write "target: 5ms"'
        case Pie(alpha_mhz=alpha, beta_mhz=beta):
            if not (_is_step(alpha) and _is_step(beta)):
                return "queue", 'PIE\'s gains are multiples of 0.0625Hz up to 2Hz: write "alpha: 0.125Hz"'
        case DropTail():
            pass
        case Step() | FqCodel() | Drr() | Sfq() | DualPi2() | Classes() as ours:
            return "queue", f"{ours.kind} is our own model's alone: write drop-tail, red, codel or pie"
        case _:
            assert_never(queue.discipline)
    return None


def _is_step(mhz: int) -> bool:
    return mhz % PIE_GAIN_MHZ == 0 and mhz <= PIE_GAIN_MHZ * PIE_MOST_STEPS
