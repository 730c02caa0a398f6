"""Stage 2, the queue: how much may wait for the rate, and which discipline drops or marks before that.

Times in ns, sizes in bytes as the link's framing counts them, probabilities in parts per billion, gains in thousandths
of a hertz.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from ewan.labs.base.units import Size


@dataclass(frozen=True, slots=True)
class DropTail:
    """Drops what finds the queue full."""

    kind: Literal["drop_tail"] = field(default="drop_tail", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """Floyd and Jacobson 1993, gentle; the average moves by 2^-weight_log2 a packet."""

    ecn: bool
    kind: Literal["red"] = field(default="red", init=False)
    max_bytes: int
    max_p_ppb: int
    min_bytes: int
    weight_log2: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Codel:
    """RFC 8289."""

    ecn: bool
    interval_ns: int
    kind: Literal["codel"] = field(default="codel", init=False)
    target_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pie:
    """RFC 8033."""

    alpha_mhz: int
    beta_mhz: int
    ecn: bool
    kind: Literal["pie"] = field(default="pie", init=False)
    target_ns: int
    update_ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """Marks each packet that makes more than this wait, where the packet allows it (DCTCP, RFC 8257)."""

    kind: Literal["step"] = field(default="step", init=False)
    threshold_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FqCodel:
    """RFC 8290: so many queues for flows, each with CoDel."""

    ecn: bool
    flows: int
    interval_ns: int
    kind: Literal["fq_codel"] = field(default="fq_codel", init=False)
    quantum_bytes: int
    target_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drr:
    """Shreedhar and Varghese 1996."""

    flows: int
    kind: Literal["drr"] = field(default="drr", init=False)
    quantum_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sfq:
    """McKenney 1990; flows are given to queues anew after each `perturb_ns`, never if 0."""

    flows: int
    kind: Literal["sfq"] = field(default="sfq", init=False)
    perturb_ns: int
    quantum_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DualPi2:
    """RFC 9332; `classic_ppb` is the classic queue's least share of the rate."""

    alpha_mhz: int
    beta_mhz: int
    classic_ppb: int
    coupling: int
    kind: Literal["dualpi2"] = field(default="dualpi2", init=False)
    step_ns: int
    target_ns: int
    update_ns: int


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """Packets with one of these DSCPs, and what may wait of them; at least one of the limits is set."""

    dscp: tuple[int, ...]
    limit_bytes: int | None
    limit_packets: int | None
    name: str
    weight: int


@dataclass(frozen=True, slots=True)
class Classes:
    """A queue a class, in place of the direction's limits; strict: a class goes before all those behind it.

    What no class names goes to the last one.
    """

    classes: tuple[TrafficClass, ...]
    kind: Literal["classes"] = field(default="classes", init=False)
    scheduler: Literal["strict", "weighted"]


Discipline = DropTail | Red | Codel | Pie | Step | FqCodel | Drr | Sfq | DualPi2 | Classes


@dataclass(frozen=True, slots=True)
class Queue:
    """Limits count packets that wait, not the one in service; at least one of the two is set."""

    limit_packets: int | None
    limit_bytes: int | None
    discipline: Discipline


def queue_limits(queue: Queue) -> tuple[Queue | TrafficClass, ...]:
    """Who has a limit: the classes, or the queue as a whole."""
    return queue.discipline.classes if isinstance(queue.discipline, Classes) else (queue,)


def limit_words(queue: Queue) -> str:
    """`12.5MB`, `1000pkt`, or both."""
    limits = [str(Size(queue.limit_bytes))] if queue.limit_bytes is not None else []
    limits += [f"{queue.limit_packets}pkt"] if queue.limit_packets is not None else []
    return " ".join(limits)


def has_one_list(discipline: Discipline) -> bool:
    """Whether all packets wait in one list."""
    match discipline:
        case DropTail() | Red() | Codel() | Pie() | Step():
            return True
        case FqCodel() | Drr() | Sfq() | DualPi2() | Classes():
            return False
        case _:
            assert_never(discipline)


def discipline_words(discipline: Discipline) -> str:
    """The discipline's name as a description writes it."""
    match discipline:
        case DropTail():
            return "drop-tail"
        case Red() | Codel() | Pie() | Step() | Drr() | Sfq() | DualPi2():
            return discipline.kind
        case FqCodel():
            return "fq-codel"
        case Classes(classes, scheduler=scheduler):
            name = "priority" if scheduler == "strict" else "weighted"
            return f"{name} of {', '.join(each.name for each in classes)}"
        case _:
            assert_never(discipline)
